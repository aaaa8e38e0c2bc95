/* t_yarn.c - what the launcher of YARN reads: addresses in yarn-site.xml, answers of the ResourceManager; and the files by which
 * members meet. */
#define _GNU_SOURCE
#include "t.h"

#include <stdio.h>
#include <string.h>

#include "launch/join_files.h"
#include "launch/yarn.h"

static void site_is(const char *text, const char *want) {
    struct str out = {0};
    yarn_site(text, &out);
    assert_string_equal(str_text(&out), want);
    str_free(&out);
}
#define P(name, value) "<property>\n <name>" name "</name>\n <value>" value "</value>\n</property>\n"

TEST(yarn_site_names_the_managers) {
    site_is("", "");
    site_is(P("yarn.resourcemanager.hostname", "rm.example"), "http://rm.example:8088");
    site_is(P("yarn.resourcemanager.hostname", " rm.example "), "http://rm.example:8088");
    site_is(P("yarn.resourcemanager.webapp.address", "rm:99") P("yarn.resourcemanager.hostname", "other"), "http://rm:99");
    site_is(P("yarn.http.policy", "HTTPS_ONLY") P("yarn.resourcemanager.hostname", "rm"), "https://rm:8090");
    site_is(P("yarn.http.policy", "HTTPS_ONLY") P("yarn.resourcemanager.webapp.https.address", "rm:8443"), "https://rm:8443");
    site_is(P("yarn.resourcemanager.webapp.address", "${yarn.resourcemanager.hostname}:8088")
                P("yarn.resourcemanager.hostname", "rm"),
            "http://rm:8088");
    site_is(P("yarn.resourcemanager.ha.rm-ids", "rm1,rm2") P("yarn.resourcemanager.webapp.address.rm1", "a:8088")
                P("yarn.resourcemanager.hostname.rm2", "b"),
            "http://a:8088,http://b:8088");
    site_is("<property><name>yarn.resourcemanager.hostname</name></property>" P("x", "y"),
            ""); /* the value of another property */
    site_is("<name>yarn.resourcemanager.hostname</name><value>", "");
}

static struct js *json(const char *text) {
    struct js *o;
    T_OK(js_parse_foreign(text, strlen(text), "answer", &o));
    return o;
}

TEST(yarn_answers_are_read) {
    struct yarn_state s;
    struct yarn_nodes n;
    struct js *o = json(
        "{\"app\": {\"state\": \"FINISHED\", \"finalStatus\": \"FAILED\", \"name\": \"stretto-a-1\", \"diagnostics\": \"why\","
        " \"resourceSecondsMap\": {\"entry\": {\"key\": 1}, \"entry\": {\"key\": 2}}}}");
    yarn_state_read(o, &s);
    js_free(o);
    assert_true(s.known && s.over);
    assert_string_equal(s.end, "FAILED");
    assert_string_equal(s.why, "why");
    o = json("{\"app\": {\"state\": \"RUNNING\"}}");
    yarn_state_read(o, &s);
    js_free(o);
    assert_true(s.known && !s.over);
    yarn_state_read(NULL, &s);
    assert_false(s.known || s.over);

    o = json(
        "{\"nodes\": {\"node\": [{\"state\": \"RUNNING\", \"usedMemoryMB\": 96, \"availMemoryMB\": 4000, \"usedVirtualCores\": 1,"
        " \"availableVirtualCores\": 3, \"nodeAttributesInfo\": {\"nodeAttributeInfo\": [{\"name\": \"rack\", \"value\": "
        "\"busy\"},"
        " {\"prefix\": \"nm.yarn.io\", \"name\": \"gpuload\", \"value\": \"idle\"}]}}, {\"state\": \"LOST\", \"availMemoryMB\": "
        "90000},"
        " {\"state\": \"RUNNING\", \"availMemoryMB\": 100, \"availableVirtualCores\": 2}]}}");
    yarn_nodes_read(o, NULL, &n);
    js_free(o);
    assert_int_equal(n.running, 2);
    assert_int_equal(n.idle, 1);
    assert_int_equal(n.busy, 0);
    assert_int_equal(n.most_memory, 4096ll << 20);
    assert_int_equal(n.most_cores, 4);
    assert_int_equal((i64)n.memory, 4196ll << 20);
}

/* YARN says that less than nothing is free where a node shrank below what runs on it; other programs may answer anything. */
TEST(yarn_nodes_without_room) {
    struct yarn_nodes n;
    struct js *o = json("{\"nodes\": {\"node\": [{\"state\": \"RUNNING\", \"usedMemoryMB\": 96, \"availMemoryMB\": -4000},"
                        " {\"state\": \"RUNNING\", \"usedMemoryMB\": 9223372036854775807, \"availMemoryMB\": 1},"
                        " {\"state\": \"RUNNING\", \"usedMemoryMB\": -9223372036854775807, \"availMemoryMB\": -9,"
                        " \"usedVirtualCores\": -3}]}}");
    yarn_nodes_read(o, NULL, &n);
    js_free(o);
    assert_int_equal(n.running, 3);
    assert_int_equal(n.most_memory, 1ll << 50);
    assert_int_equal((i64)n.memory, 1ll << 50);
    assert_int_equal(n.most_cores, 0);
}

/* Lists of one element come as a list or as the element. */
TEST(yarn_labels_are_read) {
    struct yarn_nodes n;
    struct js *o = json("{\"nodes\": {\"node\": [{\"state\": \"RUNNING\", \"nodeLabels\": [\"fastest\"], \"availMemoryMB\": 900},"
                        " {\"state\": \"RUNNING\", \"nodeLabels\": [\"fast\"], \"availMemoryMB\": 100}, {\"state\": \"RUNNING\"},"
                        " {\"state\": \"RUNNING\", \"nodeLabels\": \"fast\", \"availMemoryMB\": 300},"
                        " {\"state\": \"LOST\", \"nodeLabels\": [\"gone\"]}]}}");
    yarn_nodes_read(o, "fast", &n);
    assert_string_equal(n.labels, "fastest, fast");
    assert_int_equal(n.running, 2);
    assert_int_equal(n.most_memory, 300ll << 20);
    yarn_nodes_read(o, "gone", &n);
    assert_int_equal(n.running, 0);
    yarn_nodes_read(o, NULL, &n);
    assert_int_equal(n.running, 4);
    js_free(o);
    o = json("{\"scheduler\": {\"schedulerInfo\": {\"queueName\": \"root\", \"queues\": {\"queue\": ["
             "{\"queueName\": \"default\", \"nodeLabels\": [\"*\"]}, {\"queueName\": \"ml\","
             " \"nodeLabels\": [\"gpu\", \"fast\"]},"
             " {\"queueName\": \"small\", \"nodeLabels\": [\"gpu\"]}, {\"queueName\": \"none\"}]}}}}");
    assert_true(yarn_queue_reaches(o, NULL, "fast"));
    assert_true(yarn_queue_reaches(o, "ml", "fast"));
    assert_false(yarn_queue_reaches(o, "small", "fast") || yarn_queue_reaches(o, "none", "fast"));
    js_free(o);
    assert_true(yarn_queue_reaches(NULL, "ml", "fast"));
}

TEST(yarn_queues_are_found_at_any_depth) {
    struct js *o = json(
        "{\"scheduler\": {\"schedulerInfo\": {\"queueName\": \"root\", \"queues\": {\"queue\": [{\"queueName\": \"a\"},"
        " {\"queueName\": \"b\", \"queuePath\": \"root.b\", \"queues\": {\"queue\": [{\"queueName\": \"ml\", \"queuePath\":"
        " \"root.b.ml\"}]}}]}}}}");
    assert_true(yarn_has_queue(o, "a") && yarn_has_queue(o, "ml") && yarn_has_queue(o, "root.b.ml"));
    assert_false(yarn_has_queue(o, "m") || yarn_has_queue(o, "root.ml"));
    js_free(o);
    assert_true(yarn_has_queue(NULL, "any")); /* then YARN decides */
}

TEST(yarn_queues_have_a_limit) {
    struct js *o = json(
        "{\"scheduler\": {\"schedulerInfo\": {\"queueName\": \"root\", \"absoluteMaxCapacity\": 100, \"queues\": {\"queue\": ["
        "{\"queueName\": \"default\", \"absoluteMaxCapacity\": 60.5}, {\"queueName\": \"ml\", \"queuePath\": \"root.ml\","
        " \"absoluteMaxCapacity\": 10}, {\"queueName\": \"odd\", \"absoluteMaxCapacity\": \"x\"}]}}}}");
    assert_true(yarn_queue_most(o, NULL) == 60.5);
    assert_true(yarn_queue_most(o, "root.ml") == 10);
    assert_true(yarn_queue_most(o, "odd") == 100 && yarn_queue_most(o, "absent") == 100 && yarn_queue_most(NULL, "ml") == 100);
    js_free(o);
}

TEST(join_members_meet_in_files) {
    struct join_place p;
    char name[64], text[64];
    place_of(&p, t_dir(), "s1");
    assert_int_equal(join_ended(t_dir(), "s1"), -1);
    assert_int_equal(join_present(t_dir(), "s1", 3), 0);
    place_hello(name, 2);
    T_OK(place_write(&p, name, "who"));
    assert_int_equal(join_present(t_dir(), "s1", 3), 1);
    assert_true(place_read(&p, name, text, sizeof text));
    assert_string_equal(text, "who");
    place_name(name, 7, "line", 1);
    assert_string_equal(name, "7/line-1");
    assert_false(place_has(&p, name));
    T_OK(place_write(&p, name, "exec true\n"));
    assert_true(place_has(&p, name));
    T_OK(place_write(&p, "end", "75\n"));
    assert_int_equal(join_ended(t_dir(), "s1"), 75);
    T_OK(place_write(&p, "end", "x\n"));
    assert_int_equal(join_ended(t_dir(), "s1"), -1);
}

T_MAIN(cmocka_unit_test(yarn_site_names_the_managers), cmocka_unit_test(yarn_answers_are_read),
       cmocka_unit_test(yarn_labels_are_read),
       cmocka_unit_test(yarn_nodes_without_room),
       cmocka_unit_test(yarn_queues_are_found_at_any_depth), cmocka_unit_test(yarn_queues_have_a_limit),
       cmocka_unit_test(join_members_meet_in_files))
