/*
 * make_vectors.c - write the golden files of kinds that have none
 *
 *     make_vectors FOLDER
 *
 * A golden file is kept forever, so one that exists is never written, only
 * checked: if it fails, the library has changed what a file means, and it is
 * the library that is wrong. tests/golden.h has the recipe.
 */
#include <sys/stat.h>

#include "../tests/golden.h"

static int make_one(const char *folder, const bly_kind_info *kind,
                    golden_form form)
{
    char path[4096];
    struct stat st;
    golden_path(folder, kind->name, form, path, sizeof path);
    if (stat(path, &st) == 0) {
        const char *wrong = golden_check(folder, kind, form);
        printf("%s: %s\n", path, wrong ? wrong : "kept");
        return wrong != NULL;
    }
    bly_filter *f;
    if (golden_make(kind, form, &f) || bly_save(f, path)) {
        fprintf(stderr, "make_vectors: %s: %s\n", path, bly_error());
        return 1;
    }
    printf("%s: new, %llu bytes\n", path,
           (unsigned long long)bly_written_bytes(f));
    bly_free(f);
    return 0;
}

int main(int argc, char **argv)
{
    bly_kind_info kind;
    int nwrong = 0;
    if (argc != 2 || argv[1][0] == '-') {
        fprintf(stderr, "usage: make_vectors FOLDER\n");
        return 2;
    }
    for (size_t i = 0; bly_kind_at(i, &kind); i++)
        for (int form = 0; form < GOLDEN_NFORMS; form++)
            if (golden_wants(argv[1], i, (golden_form)form))
                nwrong += make_one(argv[1], &kind, (golden_form)form);
    return nwrong ? 1 : 0;
}
