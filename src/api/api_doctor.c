/* api_doctor.c - what stops or slows a run here, or on every host of a launcher.
 *
 *     each rank: facts of its host --comm_allgather--> rank 0 examines all: its own host, then what differs on others */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/ranks.h"
#include "base/json.h"
#include "launch/doctor.h"

bool api_has_mpi(const char *flavour) {
    char path[COMM_PATH];
    return comm_plugin(flavour, path);
}

bool api_mpi_plugin(const char *flavour, char path[API_PLUGIN]) {
    char found[COMM_PATH];
    const bool there = comm_plugin(flavour, found);
    snprintf(path, API_PLUGIN, "%s", found);
    return there;
}

static void look_for_plugins(struct facts *f) {
    char path[COMM_PATH], why[COMM_PATH];
    for (i32 i = 0; i < DOCTOR_MPIS; i++) {
        struct mpi_facts *m = &f->mpi[i];
        m->plugin = comm_plugin(m->flavour, path);
        m->loads = m->plugin && comm_plugin_loads(path, why);
        if (m->plugin && !m->loads) snprintf(m->why, sizeof m->why, "%.110s", why);
    }
}

static void look_at_devices(struct facts *f) { devices_summary(f->devices, sizeof f->devices); }

static void look_at_kernels(struct facts *f) {
    const char *best = "ref";
    if (kern_init() < 0) best = getenv("STRETTO_ISA"); /* a STRETTO_ISA that this host cannot satisfy is a difference, too */
    snprintf(f->isa, sizeof f->isa, "%.20s", kern_best()->name);
    for (i32 a = 0; a < KERN_NARCH; a++)
        if (kern_get((enum kern_arch)a)) best = kern_get((enum kern_arch)a)->name;
    snprintf(f->isa_best, sizeof f->isa_best, "%.20s", best);
}

/* Joins the ranks of a launcher; reports a failure as a fact of the host. */
static void join(const struct options *o, struct facts *f, struct comm **comm) {
    const char *launcher = comm_launched(&f->promised);
    f->world = f->ranks = f->ranks_here = 1;
    f->threads = opt_is_auto(o, OPT_threads) ? 0 : (i32)o->threads;
    snprintf(f->launcher, sizeof f->launcher, "%.36s", launcher ? launcher : "");
    snprintf(f->flavour, sizeof f->flavour, "%.12s", comm_mpi_library() ? comm_mpi_library() : "");
    if (!launcher) {
        f->promised = 1;
        f->ranks = f->ranks_here = (i32)o->ranks;
        return;
    }
    err e = comm_mpi(comm);
    if (e >= 0 && *comm) e = comm_connect(*comm);
    f->joined = e >= 0;
    if (e >= 0) {
        f->world = f->ranks = comm_size(*comm);
        f->ranks_here = comm_local_size(*comm);
        return;
    }
    snprintf(f->problem, sizeof f->problem, "%.290s", err_last()->text);
    snprintf(f->fix, sizeof f->fix, "%.190s", err_last()->fix);
}

struct report {
    struct finding own[DOCTOR_FINDINGS];
    i32 n;
    enum doctor_level worst;
    struct str text;
    struct js *hosts;
};

static void put_host(struct report *r, const struct facts *f, const struct finding *finding, i32 n) {
    struct js *host = js_object(), *list = js_array();
    for (i32 i = 0; i < n; i++) {
        struct js *o = js_object();
        js_put_text(o, "check", finding[i].check);
        js_put_text(o, "level", doctor_word(finding[i].level));
        js_put_text(o, "text", finding[i].text);
        js_put_text(o, "fix", finding[i].fix);
        js_push(list, o);
    }
    js_put_text(host, "host", f->host);
    js_put(host, "findings", list);
    js_push(r->hosts, host);
}

/* True if an earlier rank runs on the same host: its facts are the same. */
static bool seen(const struct facts *all, i32 k) {
    for (i32 i = 0; i < k; i++)
        if (strcmp(all[i].host, all[k].host) == 0) return true;
    return false;
}

static void examine(const struct facts *all, i32 ranks, struct report *r) {
    struct finding other[DOCTOR_FINDINGS];
    i32 hosts = 0, differ = 0;
    for (i32 k = 0; k < ranks; k++) {
        if (seen(all, k)) continue;
        struct finding *f = hosts++ ? other : r->own;
        const i32 n = doctor_examine(&all[k], f);
        const size_t before = r->text.len;
        if (hosts == 1) r->n = n;
        if (doctor_worst(f, n) > r->worst) r->worst = doctor_worst(f, n);
        doctor_print(f, n, hosts > 1 ? all[k].host : NULL, hosts > 1 ? r->own : NULL, &r->text);
        differ += hosts > 1 && r->text.len > before;
        put_host(r, &all[k], f, n);
    }
    if (ranks > 1)
        str_addf(&r->text, "%d rank%s on %d host%s; the lines above are of %s%s\n", ranks, ranks > 1 ? "s" : "", hosts,
                 hosts > 1 ? "s" : "", all[0].host,
                 hosts == 1 ? ""
                 : differ   ? ", then what differs on others"
                            : ", and no other host differs");
}

static err write_report(struct report *r, bool json, char **out) {
    if (!json) return text_give(&r->text, out);
    struct str text = {0};
    struct js *o = js_object();
    js_put_text(o, "worst", doctor_word(r->worst));
    js_put(o, "hosts", r->hosts);
    r->hosts = NULL;
    err e = js_text(o, &text, 2);
    js_free(o);
    return text_end(e, &text, out);
}

/* Collects the findings of all ranks on rank 0; returns the worst one on every rank. */
static err consult(struct comm *comm, const struct facts *mine, bool json, char **out, i32 *worst) {
    const i32 ranks = comm_size(comm);
    const bool speaks = comm_launched_rank() == 0;
    struct facts *all;
    struct report r = {.hosts = js_array()};
    NEW(all, ranks);
    err e = comm_allgather(comm, "facts", mine, sizeof *mine, all);
    if (e >= 0) {
        examine(all, ranks, &r);
        *worst = (i32)r.worst;
        if (!speaks) str_free(&r.text);
        e = write_report(&r, json && speaks, out);
    }
    str_free(&r.text);
    js_free(r.hosts);
    mem_free(all);
    return e;
}

stretto_err stretto_doctor(stretto_config *config, int json, char **out) {
    const struct options *o = &config->o;
    struct comm *comm = NULL;
    struct facts *mine;
    i32 worst = DOCTOR_OK;
    *out = NULL;
    NEW(mine, 1);
    facts_of_host(o->run_dir, mine);
    look_for_plugins(mine);
    look_at_devices(mine);
    look_at_kernels(mine);
    join(o, mine, &comm);
    err e = consult(mine->joined ? comm : NULL, mine, json != 0, out, &worst);
    if (e >= 0) comm_succeed(comm);
    comm_free(comm);
    mem_free(mine);
    TRY(e);
    return worst == DOCTOR_STOP ? FAIL_AT(E1101, NULL, "the lines marked stop", "something stops a run here") : 0;
}
