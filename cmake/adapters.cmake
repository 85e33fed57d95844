# Adapters: the pool under programs that know nothing of it. Each needs its library's headers; without them it is left out,
# loudly. Also the rivals that bench_pool measures beside the pool.
pkg_check_modules(SQLITE3 IMPORTED_TARGET sqlite3)
if(SQLITE3_FOUND)
	add_library(foliage_sqlite SHARED adapters/sqlite/sqlite.c)
	set_target_properties(foliage_sqlite PROPERTIES OUTPUT_NAME foliage-sqlite INSTALL_RPATH "$ORIGIN")
	target_link_libraries(foliage_sqlite PRIVATE foliage PkgConfig::SQLITE3)
	install(TARGETS foliage_sqlite LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
	install(FILES adapters/sqlite/foliage_sqlite.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
	if(CMOCKA_FOUND)
		target_link_libraries(test_sqlite PRIVATE foliage_sqlite PkgConfig::SQLITE3)
		target_compile_definitions(test_sqlite PRIVATE HAVE_SQLITE=1)
		add_test(NAME cache_test_sqlite_preload
			COMMAND bash ${CMAKE_SOURCE_DIR}/tests/cache/test_sqlite_preload.sh $<TARGET_FILE:foliage_sqlite>)
		set_tests_properties(cache_test_sqlite_preload PROPERTIES LABELS cache TIMEOUT 900
			ENVIRONMENT "FOLIAGE_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
	endif()
	target_compile_definitions(bench_pool PRIVATE HAVE_SQLITE=1)
	target_link_libraries(bench_pool PRIVATE PkgConfig::SQLITE3)
else()
	message(WARNING "sqlite3 was not found: no libfoliage-sqlite.so, its tests are skipped")
endif()

include(CheckLanguage)
check_language(CXX)
find_path(ROCKSDB_INCLUDE rocksdb/cache.h)
find_library(ROCKSDB_LIBRARY rocksdb)
if(CMAKE_CXX_COMPILER AND ROCKSDB_INCLUDE AND ROCKSDB_LIBRARY)
	enable_language(CXX)
	add_library(bench_rocksdb STATIC EXCLUDE_FROM_ALL bench/rocksdb_cache.cc)
	set_target_properties(bench_rocksdb PROPERTIES CXX_STANDARD 17 INTERPROCEDURAL_OPTIMIZATION OFF)
	# Options of the project are C's.
	set_target_properties(bench_rocksdb PROPERTIES COMPILE_OPTIONS "-Wall;-Wextra")
	target_link_libraries(bench_rocksdb PUBLIC ${ROCKSDB_LIBRARY})
	target_compile_definitions(bench_pool PRIVATE HAVE_ROCKSDB=1)
	target_link_libraries(bench_pool PRIVATE bench_rocksdb)
	set_target_properties(bench_pool PROPERTIES LINKER_LANGUAGE CXX)
endif()

# The program of docs/embedding.md is taken out of the text, compiled with the installed header's view and run.
if(CMOCKA_FOUND)
	add_test(NAME cache_test_embedding COMMAND bash ${CMAKE_SOURCE_DIR}/tests/cache/test_embedding.sh
		$<TARGET_FILE:foliage> ${CMAKE_C_COMPILER})
	set_tests_properties(cache_test_embedding PROPERTIES LABELS cache TIMEOUT 300
		ENVIRONMENT "FOLIAGE_SOURCE_DIR=${CMAKE_SOURCE_DIR}")
endif()
