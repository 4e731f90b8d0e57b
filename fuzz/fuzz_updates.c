/*
 * fuzz_updates.c - what proxies and peers say: updates, lines of store.log, ICP
 *
 * The first byte chooses. An update that is taken leads to a digest that Squid
 * would take, and packing it again from where it began leads there too; what is
 * not taken leaves no state. A line of a log names a cache_dir and a file that
 * there can be. An answer to ICP is no longer than the question.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "apps/digest/icp.h"
#include "apps/digest/digest_journal.h"
#include "apps/digest/updates.h"

#define MOST 4096 /* bytes of a digest */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Pack what was taken, and take that: the same. */
static void assert_packs(const struct digest_state *from,
                         const struct digest_state *to)
{
    struct bytes b = { 0 };
    struct digest_state again = { 0 };
    char why[512];
    if (update_pack(from, to, &b)) {
        assert(update_take(from, b.at, b.n, MOST, &again, why, sizeof why) ==
               UPDATE_TAKEN);
        assert(again.nbytes == to->nbytes && again.is.life == to->is.life &&
               again.is.version == to->is.version);
        assert(memcmp(again.bytes, to->bytes, to->nbytes) == 0);
        free(again.bytes);
    }
    free(b.at);
}

/* Two of them in turn: the second may build on the first. */
static void updates(const unsigned char *bytes, size_t n)
{
    const size_t half = n > 2 ? 2 + get_le(bytes, 2) % (n - 1) : n;
    struct digest_state s = { 0 }, next;
    char why[512] = "";
    for (size_t from = 2, to = half; from < n; from = to, to = n) {
        next = (struct digest_state){ 0 };
        const enum update_was was = update_take(&s, bytes + from, to - from,
                                                MOST, &next, why, sizeof why);
        assert((was == UPDATE_TAKEN) == (next.bytes != NULL));
        assert(was == UPDATE_TAKEN || why[0]);
        if (was != UPDATE_TAKEN)
            continue;
        assert(next.nbytes <= MOST && next.is.life && next.is.version);
        assert_packs(&s, &next);
        free(s.bytes);
        s = next;
    }
    free(s.bytes);
}

static void log_line(const char *text, size_t n)
{
    struct journal_event e;
    bool tells;
    if (journal_line(text, n, &e, &tells) && tells)
        assert(e.dir < JOURNAL_DIRS && e.file < JOURNAL_FILES);
}

static void icp(const unsigned char *packet, size_t n)
{
    bly_bytes url;
    if (!icp_query(packet, n, &url))
        return;
    assert(url.len && url.len < n);
    unsigned char *const out = malloc(n);
    if (out) {
        const size_t len = icp_answer(packet, n % 2 == 0, out);
        assert(len <= n && get_be(out + 2, 2) == len);
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    /* A copy that ends where the allocation does. */
    const size_t n = size - 1;
    unsigned char *const copy = malloc(n ? n : 1);
    if (!copy)
        return 0;
    memcpy(copy, data + 1, n);
    switch (data[0] % 3) {
    case 0:
        updates(copy, n);
        break;
    case 1:
        log_line((const char *)copy, n);
        break;
    default:
        icp(copy, n);
    }
    free(copy);
    return 0;
}
