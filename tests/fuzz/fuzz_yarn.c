/* fuzz_yarn.c - any text as what a cluster says: output of a container, yarn-site.xml, answers of the ResourceManager. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "launch/yarn.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static void in_range(bool good) {
    if (!good) abort();
}

static void output(const char *text) {
    char line[64];
    const bool found = yarn_start_failure(text, line, sizeof line);
    in_range(strlen(line) < sizeof line && !strchr(line, '\n') && found == (line[0] != 0));
}

static void site(const char *text) {
    struct str out = {0};
    yarn_site(text, &out);
    in_range(out.len == strlen(str_text(&out)));
    str_free(&out);
}

static void answer(const char *text, size_t n) {
    struct yarn_state state;
    struct yarn_nodes nodes;
    struct js *o = NULL;
    if (js_parse_foreign(text, n, "fuzz", &o) < 0) return;
    yarn_state_read(o, &state);
    yarn_nodes_read(o, "fast", &nodes);
    yarn_queue_reaches(o, NULL, "fast");
    in_range(strlen(state.why) < sizeof state.why && nodes.idle + nodes.light + nodes.busy <= nodes.running);
    const f64 most = yarn_queue_most(o, "ml");
    in_range(most > 0 && most <= 100);
    (void)yarn_has_queue(o, "ml");
    js_free(o);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    char *text = mem_alloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    output(text);
    site(text);
    answer(text, size);
    mem_free(text);
    return 0;
}
