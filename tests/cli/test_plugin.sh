# A policy from a shared object: found, listed with its knobs, run, and equal to the built-in one that it imitates.
. "$(dirname "$0")/lib.sh"
source=${FOLIAGE_SOURCE_DIR:-$here/../..}
if ! command -v "${CC:-cc}" >/dev/null; then
	echo "SKIP: no ${CC:-cc}"
	exit 0
fi
skewed 5000 300 >t.txt
cat >mine.c <<'PROGRAM'
#include <errno.h>
#include <foliage/policy.h>
#include <stdlib.h>

struct knobs {
	uint32_t part; /* percent of the room in use */
};

struct fifo {
	uint32_t room, used, hand;
	uint32_t *queue; /* ids + 1 */
	bool *here;
};

static const struct foliage_knob knobs[] = {
	{.name = "part", .summary = "percent of the room in use", .kind = FOLIAGE_KNOB_UINT,
	 .offset = offsetof(struct knobs, part), .def = 100, .min = 10, .max = 100},
	{.name = NULL},
};

static void destroy(void *state)
{
	struct fifo *f = state;

	free(f->queue);
	free(f->here);
	free(f);
}

static int create(const struct foliage_policy_env *env, const void *k, void **state)
{
	struct fifo *f = calloc(1, sizeof(*f));

	f->room = env->room * ((const struct knobs *)k)->part / 100;
	f->queue = calloc(f->room, sizeof(*f->queue));
	f->here = calloc(env->nr_ids, sizeof(*f->here));
	*state = f;
	return 0;
}

static bool access_one(void *state, uint32_t id, uint64_t now)
{
	struct fifo *f = state;

	(void)now;
	if (f->here[id])
		return true;
	if (f->queue[f->hand])
		f->here[f->queue[f->hand] - 1] = false;
	f->queue[f->hand] = id + 1;
	f->hand = (f->hand + 1) % f->room;
	f->here[id] = true;
	return false;
}

const struct foliage_policy foliage_policy = {
	.abi = FOLIAGE_POLICY_ABI + WRONG,
	.name = "mine",
	.summary = "a ring",
	.knobs = knobs,
	.knobs_size = sizeof(struct knobs),
	.create = create,
	.destroy = destroy,
	.access = access_one,
};
PROGRAM
for wrong in 0 1; do
	"${CC:-cc}" -shared -fPIC -DWRONG=$wrong -I"$source/include" -o wrong$wrong.so mine.c ||
		complain 'the policy does not compile'
done
mv wrong0.so mine.so
misses() { tail -n +2 out | awk -F, '{ print $(NF == 17 ? 6 : 0) }' | tr '\n' ' '; }

run 0 replay t.txt --pages 50 --policy ./mine.so,fifo --format csv
set -- $(misses)
same 'misses of the ring and of fifo' "${1:-}" "${2:-none}"
same label "$(sed -n 2p out | cut -d, -f2)" ./mine.so
run 0 replay t.txt --pages 100 --policy ./mine.so:part=50 --format csv
same 'a knob of a loaded policy' "$(misses)" "$1 "
run 0 policies ./mine.so
has out 'a ring'
grep -qE '^part +integer +100 +10\.\.100 +percent' out || complain "knobs: $(cat out)"
refuses 'part' replay t.txt --pages 50 --policy ./mine.so:part=5
refuses 'wrong1.so' replay t.txt --pages 50 --policy ./wrong1.so
refuses 't.txt' replay t.txt --pages 50 --policy ./t.txt
finish
