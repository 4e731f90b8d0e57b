/*
 * test_urls.c - URLs, names and lists of them
 *
 * The canonical forms and expressions are those that the protocol publishes as
 * examples; names are those of RFC 3492 and of DNS; lists are a line of each
 * form.
 */
#define _GNU_SOURCE /* strndup */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/urls/canonical.h"
#include "apps/urls/lists.h"
#include "support.h"

static void assert_canonical_n(const char *url, size_t n, const char *right)
{
    char *const room = malloc(URL_ROOM(n));
    struct url u;
    assert_non_null(room);
    /* Exactly as long as it is, so that a sanitizer sees what is too much. */
    char *const exact = malloc(n ? n : 1);
    assert_non_null(exact);
    memcpy(exact, url, n);
    assert_true(url_canonical((bly_bytes){ exact, n }, room, &u));
    char *const text = strndup(u.text, u.len);
    assert_non_null(text);
    assert_string_equal(text, right);
    /* Canonical is canonical: once more changes nothing. */
    char *const again = malloc(URL_ROOM(u.len));
    struct url v;
    assert_non_null(again);
    assert_true(url_canonical((bly_bytes){ text, u.len }, again, &v));
    assert_int_equal(v.len, u.len);
    assert_memory_equal(v.text, text, v.len);
    free(again);
    free(text);
    free(exact);
    free(room);
}

static void assert_canonical(const char *url, const char *right)
{
    assert_canonical_n(url, strlen(url), right);
}

static void the_published_canonical_forms(void **state)
{
    (void)state;
    static const char *const forms[][2] = {
        { "http://host/%25%32%35", "http://host/%25" },
        { "http://host/%25%32%35%25%32%35", "http://host/%25%25" },
        { "http://host/%2525252525252525", "http://host/%25" },
        { "http://host/asdf%25%32%35asd", "http://host/asdf%25asd" },
        { "http://host/%%%25%32%35asd%%", "http://host/%25%25%25asd%25%25" },
        { "http://www.google.com/", "http://www.google.com/" },
        { "http://%31%36%38%2e%31%38%38%2e%39%39%2e%32%36/%2E%73%65%63%75%72"
          "%65/%77%77%77%2E%65%62%61%79%2E%63%6F%6D/",
          "http://168.188.99.26/.secure/www.ebay.com/" },
        { "http://195.127.0.11/uploads/%20%20%20%20/.verify/"
          ".eBaysecure=updateuserdataxplimnbqmn-xplmvalidateinfoswqpcmlx="
          "hgplmcx/",
          "http://195.127.0.11/uploads/%20%20%20%20/.verify/"
          ".eBaysecure=updateuserdataxplimnbqmn-xplmvalidateinfoswqpcmlx="
          "hgplmcx/" },
        { "http://host%23.com/%257Ea%2521b%2540c%2523d%2524e%25f%255E00%252611"
          "%252A22%252833%252944_55%252B",
          "http://host%23.com/~a!b@c%23d$e%25f^00&11*22(33)44_55+" },
        { "http://3279880203/blah", "http://195.127.0.11/blah" },
        { "http://www.google.com/blah/..", "http://www.google.com/" },
        { "www.google.com/", "http://www.google.com/" },
        { "www.google.com", "http://www.google.com/" },
        { "http://www.evil.com/blah#frag", "http://www.evil.com/blah" },
        { "http://www.GOOgle.com/", "http://www.google.com/" },
        { "http://www.google.com.../", "http://www.google.com/" },
        { "http://www.google.com/foo\tbar\rbaz\n2",
          "http://www.google.com/foobarbaz2" },
        { "http://www.google.com/q?", "http://www.google.com/q?" },
        { "http://www.google.com/q?r?", "http://www.google.com/q?r?" },
        { "http://www.google.com/q?r?s", "http://www.google.com/q?r?s" },
        { "http://evil.com/foo#bar#baz", "http://evil.com/foo" },
        { "http://evil.com/foo;", "http://evil.com/foo;" },
        { "http://evil.com/foo?bar;", "http://evil.com/foo?bar;" },
        { "http://\x01\x80.com/", "http://%01%80.com/" },
        { "http://notrailingslash.com", "http://notrailingslash.com/" },
        { "http://www.gotaport.com:1234/", "http://www.gotaport.com/" },
        { "  http://www.google.com/  ", "http://www.google.com/" },
        { "http:// leadingspace.com/", "http://%20leadingspace.com/" },
        { "http://%20leadingspace.com/", "http://%20leadingspace.com/" },
        { "%20leadingspace.com/", "http://%20leadingspace.com/" },
        { "https://www.securesite.com/", "https://www.securesite.com/" },
        { "http://host.com/ab%23cd", "http://host.com/ab%23cd" },
        { "http://host.com//twoslashes?more//slashes",
          "http://host.com/twoslashes?more//slashes" },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        assert_canonical(forms[i][0], forms[i][1]);
}

static void what_is_not_published(void **state)
{
    (void)state;
    static const char *const forms[][2] = {
        /* Who hides behind credentials is found. */
        { "http://user:pw@evil.com/a", "http://evil.com/a" },
        { "http://good.com%2F@evil.com/", "http://evil.com/" },
        { "http://good.com@evil.com:80/", "http://evil.com/" },
        { "http://evil.com/@good.com", "http://evil.com/@good.com" },
        { "HTTP://EVIL.com:/A", "http://evil.com/A" },
        { "http:////evil.com/", "http://evil.com/" },
        { "//evil.com/x", "http://evil.com/x" },
        { "http://evil.com?q", "http://evil.com/?q" },
        { "http://.evil..com./", "http://evil.com/" },
        { "http://evil.com/a/../../b/./c//", "http://evil.com/b/c/" },
        { "http://evil.com/a/.", "http://evil.com/a/" },
        { "http://evil.com/..", "http://evil.com/" },
        { "http://evil.com/a?b=/../c", "http://evil.com/a?b=/../c" },
        { "http://evil.com/%", "http://evil.com/%25" },
        { "http://evil.com/%zz%4", "http://evil.com/%25zz%254" },
        { "http://0x7f.1/", "http://127.0.0.1/" },
        { "http://0300.0250.1/", "http://192.168.0.1/" },
        { "http://1.2.3.4.5/", "http://1.2.3.4.5/" },
        { "http://[2001:DB8:0:0::1]:8080/x", "http://[2001:db8::1]/x" },
        { "http://[::ffff:1.2.3.4]/", "http://[::ffff:1.2.3.4]/" },
        { "http://[nonsense]/", "http://[nonsense]/" },
        { "http://evil.com.:80./", "http://evil.com/" },
        { "http://good.com%40evil.com/", "http://evil.com/" },
        { "http://1\xe3\x80\x82"
          "2.3.4/",
          "http://1.2.3.4/" },
        { "http://%25"
          "1\xce\xbc"
          "e/",
          "http://%251%CE%BCe/" },
        { "http://B\xc3\x9c"
          "cher.example/",
          "http://xn--bcher-kva.example/" },
        { "http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/" },
        { "http://\xe4\xbe\x8b\xe3\x80\x82\xe6\xb5\x8b\xe8\xaf\x95/",
          "http://xn--fsq.xn--0zwm56d/" },
        { "http://fa\xc3\x9f.de/", "http://xn--fa-hia.de/" },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        assert_canonical(forms[i][0], forms[i][1]);
    char room[URL_ROOM(32)];
    struct url u;
    static const char *const none[] = {
        "",   "   ",         "http://",       "http:///",
        "#x", "http://.../", "http://user@/", ":80"
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(
            url_canonical((bly_bytes){ none[i], strlen(none[i]) }, room, &u));
}

/* Linear in time, whatever they are: a megabyte each. */
static void long_urls(void **state)
{
    (void)state;
    const size_t n = 1 << 20;
    char *const url = malloc(n);
    assert_non_null(url);
    memset(url, 'a', n);
    memcpy(url, "http://h/%", 10);
    for (size_t i = 10; i + 1 < n; i += 2)
        memcpy(url + i, "25", 2);
    assert_canonical_n(url, n, "http://h/%25");
    memset(url + 9, '/', n - 9);
    assert_canonical_n(url, n, "http://h/");
    char *const room = malloc(URL_ROOM(n));
    struct url u;
    assert_non_null(room);
    static const char *const parts[] = {
        "\xff", "\xc3\xa9.", ".", "../", "%", "@", ":", "?", "[", "1."
    };
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        const size_t len = strlen(parts[p]);
        for (size_t i = 0; i < n; i++)
            url[i] = parts[p][i % len];
        bly_bytes found[URL_EXPRESSIONS];
        if (url_canonical((bly_bytes){ url, n }, room, &u)) {
            assert_true(u.len <= URL_TEXT(n));
            assert_true(url_expressions(&u, found) <= URL_EXPRESSIONS);
        }
    }
    free(room);
    free(url);
}

static void assert_expressions(const char *url, size_t n,
                               const char *const *right)
{
    char room[URL_ROOM(128)];
    struct url u;
    bly_bytes found[URL_EXPRESSIONS];
    assert_true(url_canonical((bly_bytes){ url, strlen(url) }, room, &u));
    assert_int_equal(url_expressions(&u, found), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(found[i].len, strlen(right[i]));
        assert_memory_equal(found[i].ptr, right[i], found[i].len);
    }
}

static void the_published_expressions(void **state)
{
    (void)state;
    assert_expressions(
        "http://a.b.c/1/2.html?param=1", 8,
        (const char *const[]){ "a.b.c/1/2.html?param=1", "a.b.c/1/2.html",
                               "a.b.c/", "a.b.c/1/", "b.c/1/2.html?param=1",
                               "b.c/1/2.html", "b.c/", "b.c/1/" });
    assert_expressions(
        "http://a.b.c.d.e.f.g/1.html", 10,
        (const char *const[]){ "a.b.c.d.e.f.g/1.html", "a.b.c.d.e.f.g/",
                               "c.d.e.f.g/1.html", "c.d.e.f.g/",
                               "d.e.f.g/1.html", "d.e.f.g/", "e.f.g/1.html",
                               "e.f.g/", "f.g/1.html", "f.g/" });
    assert_expressions("http://1.2.3.4/1/", 2,
                       (const char *const[]){ "1.2.3.4/1/", "1.2.3.4/" });
    assert_expressions(
        "a.b.c.d.e/", 4,
        (const char *const[]){ "a.b.c.d.e/", "b.c.d.e/", "c.d.e/", "d.e/" });
    assert_expressions("h/a/b/c/d/e?x", 6,
                       (const char *const[]){ "h/a/b/c/d/e?x", "h/a/b/c/d/e",
                                              "h/", "h/a/", "h/a/b/",
                                              "h/a/b/c/" });
}

static void assert_name(const char *name, const char *right)
{
    char room[NAME_ROOM];
    bool address;
    const char *why;
    const size_t n = name_canonical(name, strlen(name), room, &address, &why);
    assert_int_equal(n, right ? strlen(right) : 0);
    if (right)
        assert_memory_equal(room, right, n);
    else
        assert_non_null(why);
}

static void names_have_one_form(void **state)
{
    (void)state;
    assert_name("Example.ORG.", "example.org");
    assert_name("_dmarc.example.org", "_dmarc.example.org");
    assert_name("\xce\xa0\xce\xb1\xcf\x81\xce\xac\xce\xb4\xce\xb5\xce\xb9\xce"
                "\xb3\xce\xbc\xce\xb1",
                "xn--hxajbheg2az3al");
    assert_name("\xce\xb2\xcf\x8c\xce\xbb\xce\xbf\xcf\x82.com",
                "xn--nxasmm1c.com"); /* with the final sigma */
    assert_name("0x7f.1", "127.0.0.1");
    assert_name("", NULL);
    assert_name(".", NULL);
    assert_name("a..b", NULL);
    assert_name(".a", NULL);
    assert_name("a b", NULL);
    assert_name("\xff.org", NULL);
    char label[70] = { 0 };
    memset(label, 'a', 63);
    assert_name(label, label);
    memset(label, 'a', 64);
    assert_name(label, NULL);
}

/* ----------------------------------------------------------------- lists */

struct taken {
    char text[2048];
};

static bool keep_entry(void *ctx, bly_bytes entry, enum entry_kind kind)
{
    struct taken *const t = ctx;
    const size_t at = strlen(t->text);
    snprintf(t->text + at, sizeof t->text - at, "%s%s%.*s", at ? " " : "",
             kind == ENTRY_ALLOWED ? "@" : "", (int)entry.len,
             (const char *)entry.ptr);
    return true;
}

/* What comes of some lines: the entries, exceptions with an '@'. */
static struct list_counts assert_list(bool domains, const char *lines,
                                      const char *right)
{
    struct taken t = { "" };
    struct list_reader r = { .domains = domains,
                             .take = keep_entry,
                             .ctx = &t };
    list_begin(&r);
    while (*lines) {
        const size_t n = strcspn(lines, "\n");
        const char *why;
        if (!list_line(&r, lines, n, &why)) {
            assert_non_null(why);
            r.n.bad++;
        }
        lines += n + (lines[n] == '\n');
    }
    assert_string_equal(t.text, right);
    list_end(&r);
    return r.n;
}

static void names_of_all_forms(void **state)
{
    (void)state;
    struct list_counts n;
    n = assert_list(true,
                    "\xef\xbb\xbf# plain\nexample.org\n*.Example.NET.\r\n"
                    ".example.com # why\n\nnot a name\n-\xff-\n",
                    "example.org example.net example.com");
    assert_int_equal(n.bad, 2);
    n = assert_list(true,
                    "127.0.0.1 localhost\n::1 ip6-localhost ip6-loopback\n"
                    "0.0.0.0 a.example b.example # two\n"
                    "192.168.1.7 printer.example\n0.0.0.0 0.0.0.0\n",
                    "a.example b.example");
    assert_int_equal(n.skipped, 1);
    assert_int_equal(n.bad, 0);
    n = assert_list(true,
                    "[Adblock Plus 2.0]\n! title\n||a.example^\n"
                    "||b.example^$popup\n||c.example^$all,important\n"
                    "@@||good.a.example^\n||d.example/x^\n||e.*^\n||f.example\n"
                    "/banner/*\nexample.org##.ad\n###ad\ng.example\n",
                    "a.example c.example @good.a.example g.example");
    assert_int_equal(n.skipped, 6);
    assert_int_equal(n.bad, 0);
    n = assert_list(
        true,
        "; zone\n$TTL 1h\n$ORIGIN rpz.local.\n"
        "@ IN SOA localhost. root.localhost. (\n 1 ; serial\n 3600 600 )\n"
        "  NS localhost.\na.example CNAME .\n*.a.example 300 IN CNAME .\n"
        "b.example.rpz.local. CNAME *.\ngood.b.example CNAME rpz-passthru.\n"
        "32.1.2.0.192.rpz-ip CNAME .\nc.example A 192.0.2.1\n"
        "  AAAA ::1\nd.example CNAME rpz-tcp-only.\nelse.where. CNAME .\n"
        "$INCLUDE more\n",
        "a.example a.example b.example @good.b.example c.example c.example");
    assert_int_equal(n.skipped, 2);
    assert_int_equal(n.bad, 2);
    n = assert_list(true, "zip\n", "zip");
    assert_int_equal(n.single, 1);
}

static void urls_of_all_forms(void **state)
{
    (void)state;
    struct list_counts n;
    n = assert_list(false,
                    "# plain\nHTTP://Evil.COM/A?b#c\nevil.org\n   \n1.2.3.4\n"
                    "http://\nhttp://a b/\n",
                    "evil.com/A?b evil.org/ 1.2.3.4/");
    assert_int_equal(n.bad, 2);
    n = assert_list(false,
                    "! title\n1.2.3.4\n||evil.com/a/b.exe^$all\n"
                    "||evil.org^\n||evil.net/dir/\n||evil.net/part\n"
                    "@@||evil.org/good/^\n-banner-\n||x.com/*/y^\n",
                    "1.2.3.4/ evil.com/a/b.exe evil.org/ evil.net/dir/ "
                    "@evil.org/good/");
    assert_int_equal(n.skipped, 3);
    assert_int_equal(n.caseless, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_canonical_forms),
        cmocka_unit_test(what_is_not_published),
        cmocka_unit_test(long_urls),
        cmocka_unit_test(the_published_expressions),
        cmocka_unit_test(names_have_one_form),
        cmocka_unit_test(names_of_all_forms),
        cmocka_unit_test(urls_of_all_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
