// SPDX-License-Identifier: MIT
//
// RocksDB's block caches behind the functions that bench/pool.c calls: keys are 16 bytes as its
// block cache keys are (the HyperClockCache takes no others), each entry is charged 1.
#include <cstdint>
#include <cstring>
#include <memory>

#include <rocksdb/cache.h>
#include <rocksdb/slice.h>

namespace
{

struct Key {
	uint64_t object, index;
};

void Nothing(const rocksdb::Slice &, void *)
{
}

using Shared = std::shared_ptr<rocksdb::Cache>;

} // namespace

extern "C" {

void *bench_rocksdb_lru(uint64_t entries)
{
	rocksdb::LRUCacheOptions options;

	options.capacity = entries;
	options.metadata_charge_policy = rocksdb::kDontChargeCacheMetadata;
	return new Shared(rocksdb::NewLRUCache(options));
}

void *bench_rocksdb_hyper_clock(uint64_t entries)
{
	rocksdb::HyperClockCacheOptions options(entries, 1);

	options.metadata_charge_policy = rocksdb::kDontChargeCacheMetadata;
	return new Shared(options.MakeSharedCache());
}

void bench_rocksdb_close(void *cache)
{
	delete static_cast<Shared *>(cache);
}

uint64_t bench_rocksdb_run(void *cache, const uint32_t *keys, size_t n, bool create)
{
	static char value;
	rocksdb::Cache *c = static_cast<Shared *>(cache)->get();
	uint64_t misses = 0;

	for (size_t i = 0; i < n; i++) {
		Key key{1, keys[i]};
		rocksdb::Slice slice(reinterpret_cast<const char *>(&key), sizeof(key));
		rocksdb::Cache::Handle *handle = c->Lookup(slice);

		if (handle) {
			c->Release(handle);
			continue;
		}
		misses++;
		if (create && c->Insert(slice, &value, 1, Nothing, &handle).ok())
			c->Release(handle);
	}
	return misses;
}

} // extern "C"
