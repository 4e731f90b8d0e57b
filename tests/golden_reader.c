/*
 * golden_reader.c - the golden files, on another machine
 *
 *     golden_reader FOLDER
 *
 * What test_format.c asks of the golden files here (golden.h), asked by a
 * program that needs nothing but the library: it is built statically for
 * aarch64, for 32 bits and for a big-endian machine, and run by qemu-user. The
 * rows that such a machine has are held against the portable one on the way.
 */
#include "coded_golden.h"
#include "golden.h"
#include "each_row.h"

static int check(const char *folder, const bly_kind_info *kind,
                 golden_form form)
{
    const char *wrong = golden_check(folder, kind, form);
    printf("%s%s: %s\n", kind->name, golden_suffix(form),
           wrong ? wrong : "right");
    return wrong != NULL;
}

int main(int argc, char **argv)
{
    bly_kind_info kind;
    int failures = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: golden_reader FOLDER\n");
        return 2;
    }
    for (size_t i = 0; bly_kind_at(i, &kind); i++)
        for (int form = 0; form < GOLDEN_NFORMS; form++)
            if (golden_wants(argv[1], i, (golden_form)form))
                failures += check(argv[1], &kind, (golden_form)form);
    const bool coded = coded_golden() == CODED_GOLDEN;
    printf("symbols of sets: %s\n", coded ? "right" : "differ");
    const char *row = rows_check(400);
    printf("rows: %s\n", row ? row : "right");
    return failures || row || !coded;
}
