/*
 * web_serve.c - bloomery web: the playground from a folder, on loopback
 *
 *     GET /             index.html
 *     GET /app.js       and so on: names of files in the folder, nothing else
 *     GET /handbook/    the site that make site builds, if it is there
 *
 * All files are read when it begins, and compressed once; so a path from
 * outside is only ever compared with names, and never opened. Who may come in
 * and for how long is wire/http.h's.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "apps/web/web.h"
#include "wire/http.h"
#include "report/say.h"

#define WEB_MOST_FILES 1024
#define WEB_MOST_DEPTH 8          /* folders in folders of the handbook */
#define WEB_MOST_BYTES (16 << 20) /* of one file */

struct web_file {
    char name[128]; /* as in the path, without the first slash */
    const char *type;
    unsigned char *bytes, *packed; /* packed NULL: not worth it */
    size_t nbytes, npacked;
};

struct web_server {
    const struct web_args *args;
    char folder[4096];
    struct web_file files[WEB_MOST_FILES];
    size_t n, nplay; /* the playground's come first */
    bool handbook;
};

static const struct {
    const char *ending, *type;
} web_types[] = {
    { ".html", "text/html; charset=utf-8" },
    { ".js", "text/javascript; charset=utf-8" },
    { ".css", "text/css; charset=utf-8" },
    { ".svg", "image/svg+xml" },
    { ".wasm", "application/wasm" },
    { ".json", "application/json" },
    { ".csv", "text/csv; charset=utf-8" },
    { ".txt", "text/plain; charset=utf-8" },
    { ".png", "image/png" },
};

static const char *type_of(const char *name)
{
    const char *const dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < sizeof web_types / sizeof web_types[0]; i++)
        if (strcmp(dot, web_types[i].ending) == 0)
            return web_types[i].type;
    return NULL; /* nothing of ours */
}

/* ------------------------------------------------------------------- files */

/* The file as gzip, if that is shorter. */
static void pack(struct web_file *f)
{
    z_stream z = { 0 };
    if (deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return;
    const size_t room = deflateBound(&z, (uLong)f->nbytes);
    f->packed = malloc(room);
    z.next_in = f->bytes;
    z.avail_in = (uInt)f->nbytes;
    z.next_out = f->packed;
    z.avail_out = (uInt)room;
    const bool ok = f->packed && deflate(&z, Z_FINISH) == Z_STREAM_END;
    f->npacked = z.total_out;
    deflateEnd(&z);
    if (!ok || f->npacked >= f->nbytes) {
        free(f->packed);
        f->packed = NULL;
        f->npacked = 0;
    }
}

static bool read_file(const char *path, struct web_file *f)
{
    struct stat about;
    FILE *const in = fopen(path, "re");
    bool ok = in && fstat(fileno(in), &about) == 0;
    if (ok && (!S_ISREG(about.st_mode) || about.st_size > WEB_MOST_BYTES)) {
        fclose(in);
        fail("%s: not a file of the playground, which have at most %d bytes",
             path, WEB_MOST_BYTES);
        return false;
    }
    f->nbytes = ok ? (size_t)about.st_size : 0;
    f->bytes = malloc(f->nbytes + 1);
    ok = ok && f->bytes && fread(f->bytes, 1, f->nbytes, in) == f->nbytes;
    if (!ok)
        fail_path(path, errno ? errno : EIO);
    if (in)
        fclose(in);
    return ok;
}

/* One more file, under this name. What is of no type of ours is left out. */
static bool take_file(struct web_server *s, const char *path, const char *name)
{
    struct web_file *const f = &s->files[s->n];
    const char *const type = type_of(name);
    if (!type || s->n == WEB_MOST_FILES || strlen(name) >= sizeof f->name)
        return true;
    strcpy(f->name, name);
    f->type = type;
    s->n++;
    if (!read_file(path, f))
        return false;
    /* The handbook is large, and mostly read on this machine. */
    if (strchr(name, '/') == NULL)
        pack(f);
    return true;
}

/* The files of a folder, under a prefix; of folders in it as well, as deep as
 * is said. */
static bool read_folder(struct web_server *s, const char *folder,
                        const char *prefix, int depth)
{
    DIR *const d = opendir(folder);
    bool ok = d != NULL;
    if (!d)
        fail("%s: %s; make web makes the playground, and --folder says where "
             "it is",
             folder, strerror(errno));
    for (const struct dirent *e; ok && (e = readdir(d));) {
        char path[5000], name[512];
        struct stat about;
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(name, sizeof name, "%s%s", prefix, e->d_name);
        if (depth && stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
            strncat(name, "/", sizeof name - strlen(name) - 1);
            ok = read_folder(s, path, name, depth - 1);
        } else {
            ok = take_file(s, path, name);
        }
    }
    if (d)
        closedir(d);
    return ok;
}

static const struct web_file *find_file(const struct web_server *s,
                                        const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->files[i].name, name) == 0)
            return &s->files[i];
    return NULL;
}

static bool read_playground(struct web_server *s)
{
    if (!read_folder(s, s->folder, "", 0))
        return false;
    s->nplay = s->n;
    if (find_file(s, "index.html"))
        return true;
    fail("%s: no index.html in it; make web makes the playground", s->folder);
    return false;
}

/* It stands beside the playground, as make site leaves it or as make install
 * puts it. */
static bool read_handbook(struct web_server *s)
{
    static const char *const places[] = { "../handbook", "../site" };
    char path[5000];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s/%s/search/search_index.json", s->folder,
                 places[i]);
        if (access(path, R_OK))
            continue;
        snprintf(path, sizeof path, "%s/%s", s->folder, places[i]);
        s->handbook = read_folder(s, path, "handbook/", WEB_MOST_DEPTH);
        return s->handbook;
    }
    return true;
}

/* Where the playground is: as said, beside the program as make leaves it, or
 * where make install puts it. */
static bool find_folder(struct web_server *s)
{
    static const char *const places[] = { "web", "../share/bloomery/web",
                                          "../../share/bloomery/web" };
    char self[3000], path[4096];
    if (s->args->folder) {
        snprintf(s->folder, sizeof s->folder, "%s", s->args->folder);
        return true;
    }
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    char *const slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, sizeof path, "%s/%s/index.html", self, places[i]);
        if (access(path, R_OK) == 0) {
            snprintf(s->folder, sizeof s->folder, "%s/%s", self, places[i]);
            return true;
        }
    }
    fail("the playground's files are not here; make web makes them, and "
         "--folder says where they are");
    return false;
}

/* ----------------------------------------------------------------- answers */

static enum MHD_Result web_answer(void *ctx, struct MHD_Connection *to,
                                  const char *url)
{
    const struct web_server *const s = ctx;
    const char *const name = strcmp(url, "/") == 0 ? "index.html"
                             : strcmp(url, "/handbook/") == 0
                                 ? "handbook/index.html"
                                 : url + 1;
    const struct web_file *const f = *url == '/' ? find_file(s, name) : NULL;
    if (!f)
        return http_say(to, 404,
                        s->handbook ? "The playground is at /, and the "
                                      "handbook at /handbook/.\n"
                                    : "The playground is at /.\n");
    const char *const takes =
        MHD_lookup_connection_value(to, MHD_HEADER_KIND, "Accept-Encoding");
    const bool packed = f->packed && takes && strstr(takes, "gzip");
    struct MHD_Response *const r = MHD_create_response_from_buffer(
        packed ? f->npacked : f->nbytes, packed ? f->packed : f->bytes,
        MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    MHD_add_response_header(r, "Content-Type", f->type);
    MHD_add_response_header(r, "Cache-Control", "no-cache");
    MHD_add_response_header(r, "Vary", "Accept-Encoding");
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (packed)
        MHD_add_response_header(r, "Content-Encoding", "gzip");
    return http_send(to, 200, r);
}

static void web_started(void *ctx, const char *base, uint64_t port)
{
    const struct web_server *const s = ctx;
    char url[256], handbook[300];
    snprintf(url, sizeof url, "%s/", base);
    snprintf(handbook, sizeof handbook, "%s/handbook/", base);
    struct web_serving told = { .url = url,
                                .folder = s->folder,
                                .handbook = s->handbook ? handbook : NULL,
                                .port = port,
                                .files = s->nplay };
    for (size_t i = 0; i < s->nplay; i++) {
        told.bytes += s->files[i].nbytes;
        told.sent +=
            s->files[i].packed ? s->files[i].npacked : s->files[i].nbytes;
    }
    if (!quiet)
        web_tell_serving(s->args, &told);
}

int web_serve(const struct web_args *args, const struct list *operands)
{
    if (operands->n)
        return fail("'%s' is not an option; --folder says where the files are",
                    operands->at[0]);
    struct web_server *const s = calloc(1, sizeof *s);
    struct http service = {
        .listen = args->listen ? args->listen : "127.0.0.1:8081",
        .limits = { 200, 64, 10, 60 },
        .answer = web_answer,
        .started = web_started,
        .ctx = s,
        .fd = -1,
    };
    int status = TROUBLE;
    if (!s)
        return fail("out of memory");
    s->args = args;
    if (find_folder(s) && read_playground(s) && read_handbook(s) &&
        http_open(&service))
        status = http_run(&service);
    http_close(&service);
    for (size_t i = 0; i < s->n; i++) {
        free(s->files[i].bytes);
        free(s->files[i].packed);
    }
    free(s);
    return status;
}
