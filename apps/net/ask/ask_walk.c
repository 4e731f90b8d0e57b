/*
 * ask_walk.c - asking on: neighbours, and those of one that is silent
 *
 * Each neighbour is first asked for its mark, which it answers at once. So it
 * is known soon who is there; only those whose marks fit are asked to walk on,
 * and may take their time. One that is silent may be on the way: those whom it
 * has named as its neighbours are asked in its name. Bits that it would have
 * written are not known then, so that the way may be lost behind it, if it has
 * written over one of two bits of a router further back: once in some hundred
 * times for each of these.
 *
 * What a question can cost is bounded: no router twice on one way, so many hops
 * and so many routers in all, shared out among those that are asked, and a time
 * that shrinks with every hop.
 */
#include "apps/net/ask/ask_walk.h"

#include <stdlib.h>
#include <string.h>

bool ask_own(const struct ask_self *self, const struct ask_question *q,
             struct ask_node *out, const struct mark **mark, bool *fits)
{
    for (unsigned i = 0; i < self->n; i++)
        if (strcmp(self->links[i].link.name, q->asker) == 0) {
            *mark = &self->links[i].way;
            *out = (struct ask_node){ .before = ASK_FIRST };
            memcpy(out->name, self->name, ASK_NAME);
            *fits = ask_fits(*mark, &q->b, &out->left, &out->all);
            return true;
        }
    return false;
}

bool ask_one(struct caller *c, const struct address *to,
             const struct ask_question *q, struct ask_tree *out, bool *busy)
{
    struct blob body = { 0 };
    struct frame answer;
    *busy = false;
    ask_put(&body, ASK_WALK, q);
    c->timeout = q->ms;
    const bool ok = call_ask(c, to, ASK_WALK, &body, &answer);
    blob_free(&body);
    if (!ok)
        return false;
    *busy = call_error(c, &answer) == FRAME_BUSY;
    return !(answer.flags & FRAME_ERROR) && ask_take_tree(&answer, out);
}

/* ------------------------------------------------------------ one neighbour */

struct walk {
    const struct ask_self *self;
    struct caller *call;
    struct ask_tree *tree;
    int64_t until;
    unsigned routers; /* that may still be asked */
};

enum heard { HEARD_NO, HEARD_YES, HEARD_NOTHING, HEARD_REFUSED };

/* Does the mark of a router fit? */
static enum heard mark_ask(struct walk *w, const struct address *to,
                           const struct ask_question *q)
{
    struct blob body = { 0 };
    struct frame answer;
    ask_put(&body, ASK_MARK, q);
    w->call->timeout = w->self->patience;
    const bool ok = call_ask(w->call, to, ASK_MARK, &body, &answer);
    blob_free(&body);
    if (!ok)
        return HEARD_NOTHING;
    const enum frame_error error = call_error(w->call, &answer);
    return error == FRAME_BUSY          ? HEARD_REFUSED
           : error || answer.nbody != 3 ? HEARD_NO
           : answer.body[0]             ? HEARD_YES
                                        : HEARD_NO;
}

static void node_add(struct walk *w, unsigned before, const char *name,
                     enum ask_state state)
{
    struct ask_node node = { .before = before, .state = state };
    memcpy(node.name, name, ASK_NAME);
    ask_add(w->tree, &node);
}

/* One whose mark fits: all behind it, with its share of what may be asked. */
static void branch_walk(struct walk *w, unsigned before,
                        const struct ask_link *to, const struct ask_question *q,
                        unsigned share)
{
    struct ask_question on = *q;
    const int64_t left = w->until - session_within(0) - ASK_MARGIN;
    bool busy;
    struct ask_tree *const more = malloc(sizeof *more);
    on.hops = q->hops - 1;
    on.routers = share;
    on.ms = left > 0 ? (unsigned)left : 0;
    if (!more || !on.hops || !on.routers || !on.ms)
        node_add(w, before, to->name, ASK_CUT);
    else if (ask_one(w->call, &to->at, &on, more, &busy)) {
        ask_join(w->tree, before, more);
        w->routers -= more->n < w->routers ? more->n : w->routers;
    } else
        node_add(w, before, to->name, busy ? ASK_BUSY : ASK_CUT);
    free(more);
}

/* ---------------------------------------------------------------- neighbours
 */

/* Those of a list who are not on the way and whose mark fits are asked to walk;
 * those who do not answer go into `silent`. */
static void list_walk(struct walk *w, unsigned before,
                      const struct ask_question *q,
                      const struct ask_link *links, const unsigned *numbers,
                      unsigned n, unsigned *silent, unsigned *nsilent)
{
    unsigned yes[ASK_LINKS], nyes = 0;
    *nsilent = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct ask_link *const to = &links[i];
        if (!to->at.family || ask_on_way(q, to->name) ||
            strcmp(to->name, q->asker) == 0)
            continue;
        if (session_within(0) + ASK_MARGIN >= w->until) {
            node_add(w, before, to->name, ASK_CUT);
            continue;
        }
        switch (mark_ask(w, &to->at, q)) {
        case HEARD_YES:
            yes[nyes++] = i;
            break;
        case HEARD_NOTHING:
            silent[(*nsilent)++] = numbers ? numbers[i] : i;
            break;
        case HEARD_REFUSED:
            node_add(w, before, to->name, ASK_BUSY);
            break;
        case HEARD_NO:
        default:
            break;
        }
    }
    for (unsigned i = 0; i < nyes; i++)
        branch_walk(w, before, &links[yes[i]], q, w->routers / (nyes - i));
}

/* In the name of one who does not answer. */
static void silent_walk(struct walk *w, unsigned before, unsigned number,
                        const struct ask_question *q)
{
    const struct ask_links *const known = &w->self->links[number].known;
    struct ask_question on = *q;
    unsigned silent[ASK_LINKS], nsilent = 0;
    const struct ask_link *const who = &w->self->links[number].link;
    const unsigned at = w->tree->n;
    node_add(w, before, who->name, ASK_SILENT);
    if (w->tree->n == at || on.nway == ASK_HOPS)
        return;
    memcpy(on.asker, who->name, ASK_NAME);
    memcpy(on.way[on.nway++], who->name, ASK_NAME);
    list_walk(w, at, &on, known->at, NULL, known->n, silent, &nsilent);
    /* Two in a row: nobody knows on. */
    for (unsigned i = 0; i < nsilent; i++)
        node_add(w, at, known->at[silent[i]].name, ASK_SILENT);
}

void ask_walk(const struct ask_self *self, const struct ask_question *q,
              struct caller *c, struct ask_tree *out)
{
    struct walk w = { .self = self,
                      .call = c,
                      .tree = out,
                      .until = session_within(q->ms),
                      .routers =
                          q->routers < ASK_ROUTERS ? q->routers : ASK_ROUTERS };
    struct ask_question on = *q;
    struct ask_link links[ASK_LINKS];
    struct ask_node node;
    const struct mark *mark;
    unsigned silent[ASK_LINKS], nsilent;
    bool fits;
    out->n = 0;
    if (!ask_own(self, q, &node, &mark, &fits) || !fits ||
        ask_on_way(q, self->name))
        return;
    ask_add(out, &node);
    if (!w.routers || !q->hops || q->nway == ASK_HOPS) {
        out->at[0].state = ASK_CUT;
        return;
    }
    w.routers--;
    ask_write(mark, &on.b);
    memcpy(on.asker, self->name, ASK_NAME);
    memcpy(on.way[on.nway++], self->name, ASK_NAME);
    unsigned n = 0, numbers[ASK_LINKS];
    for (unsigned i = 0; i < self->n; i++)
        if (strcmp(self->links[i].link.name, q->asker) != 0) {
            numbers[n] = i;
            links[n++] = self->links[i].link;
        }
    list_walk(&w, 0, &on, links, numbers, n, silent, &nsilent);
    for (unsigned i = 0; i < nsilent; i++)
        silent_walk(&w, 0, silent[i], &on);
}
