/* split.c - which ranks compute, with what part of a batch and with which optimiser. */
#include <string.h>

#include "learn/store/hogwild.h"
#include "learn/store/inside.h"

bool store_used(const struct resources *use) {
    return comm_size(use->comm) > 1 && !store_is_plain(&use->store) && !use->store.choice.policy->shared;
}

i32 store_parts(const struct fit *t) {
    const struct resources *use = &t->job->use;
    return store_used(use) ? imax(1, comm_size(use->comm) - use->store.servers) : hogwild_workers(use);
}

/* Gradients of single steps, unless the policy or an option asks for local steps or a worker optimiser. */
bool store_pushes_gradients(const struct store_spec *s) {
    const bool single = s->every == EVERY_POLICY || (s->every == EVERY_STEPS && s->number <= 1);
    return single && !s->worker && store_local_steps(&s->choice) == 1 && !s->choice.policy->own_weights &&
           !s->choice.policy->chooses && s->choice.policy->local == 1;
}

/* Steps between two pushes of signs (bench/results/stores.md). */
enum { SIGN_STEPS = 4 };

/* Signs of gradients make the second moments of a block alike: an optimiser of the servers that divides by them learns more
 * slowly, whatever the residual gives back.  On the workers it sees exact gradients. */
void store_settle(struct fit *t) {
    struct store_spec *s = &t->own.use.store;
    const char *optim = t->f->spec.optim;
    const bool asked = s->every != EVERY_POLICY || s->server || s->server_lr >= 0 || s->worker;
    if (!store_used(&t->own.use) || strcmp(s->codec.codec->name, "sign") != 0 || strcmp(optim, "sgd") == 0) return;
    if (asked || !store_pushes_gradients(s) || s->choice.policy->keeps_base) return;
    s->every = EVERY_STEPS;
    s->number = SIGN_STEPS;
    event_note(t->own.use.events, EVENT_NOTE,
               "codec sign: workers make %d steps of %s before they push; --granularity 1step pushes the signs of each gradient, "
               "at a higher loss",
               SIGN_STEPS, optim);
}

bool store_carries(const struct fit *t) {
    return store_used(&t->job->use) && t->job->use.store.by_time && t->f->spec.decoder->every_step;
}

const char *store_engine_optim(const struct fit *t) {
    const struct store_spec *s = &t->job->use.store;
    if (!store_used(&t->job->use)) return t->f->spec.optim;
    if (store_pushes_gradients(s))
        return s->server ? s->server : s->choice.policy->server ? s->choice.policy->server : t->f->spec.optim;
    return s->worker ? s->worker : s->choice.policy->worker ? s->choice.policy->worker : t->f->spec.optim;
}

err store_split(struct fit *t, i32 rows, i32 *B, struct resources *use) {
    const i32 parts = store_parts(t), windows = *B / rows;
    TRY(hogwild_split(t, use));
    if (parts < 2 && !store_used(use)) return 0;
    if (t->f->spec.cut.slices > 1)
        return FAIL_AT(E401, "--parallel", "--parallel data", "%d time slices: workers of a store compute whole windows",
                       t->f->spec.cut.slices);
    if (windows < parts)
        return FAIL_AT(E106, "--store",
                       t->hogwild ? "fewer --threads   or   a larger --batch" : "fewer ranks   or   a larger --batch",
                       "a step has %d window%s for %d workers", windows, windows == 1 ? "" : "s", parts);
    if (windows % parts)
        event_note(t->job->use.events, EVENT_WARNING, "a step takes %d windows in place of %d: %d for each of %d workers",
                   windows / parts * parts, windows, windows / parts, parts);
    const i32 grain = plan_grain(windows / parts * parts * rows, use->grains);
    *B = windows / parts * rows;
    if (t->hogwild) return 0;
    use->grains = ceil_div(*B, grain);
    use->comm = NULL;
    use->ranks = NULL;
    use->policy = NULL;
    if (use->machine->ndevice == 1) use->parallel = "auto";
    return 0;
}
