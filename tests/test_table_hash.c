/*
 * test_table_hash.c - a hash that nobody outside of the process knows
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lookup.h"
#include "support.h"

/* The hash in a process of its own, which chooses its secret. */
static uint64_t elsewhere(const char *key)
{
    int pipes[2];
    uint64_t hash = 0;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hash = table_hash(key, strlen(key));
        _exit(write(pipes[1], &hash, sizeof hash) != sizeof hash ||
              hash != table_hash(key, strlen(key)));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(pipes[0], &hash, sizeof hash), sizeof hash);
    close(pipes[0]);
    close(pipes[1]);
    return hash;
}

static void each_process_has_a_secret(void **state)
{
    (void)state;
    /* Before this process has one, which its children would inherit. */
    assert_true(elsewhere("key") != elsewhere("key"));
    assert_true(table_hash("key", 3) == table_hash("key", 3));
    assert_true(table_hash("key", 3) != table_hash("kez", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_process_has_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
