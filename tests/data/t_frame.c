/* t_frame.c - tables in memory (Arrow C stream interface): every type against the same rows as CSV text, arrays that are parts of
 * larger ones, batches, columns that are lent, and producers that fail. */
#include "tables.h"

#include "data/frame.h"

enum { COLUMNS = 12, BATCHES = 3, ROWS = 5 };

/* ------------------------------------------------------------------ a producer ---------------------------------------------- */

/* A table whose arrays lie in static memory; released: how many arrays and schemas have been. */
struct maker {
    struct ArrowSchema column[COLUMNS], word[COLUMNS];
    struct ArrowSchema *child[COLUMNS];
    struct ArrowArray array[BATCHES][COLUMNS], words[BATCHES][COLUMNS];
    struct ArrowArray *part[BATCHES][COLUMNS];
    const void *buffer[BATCHES][COLUMNS][4], *word_buffer[BATCHES][COLUMNS][4];
    i64 rows[BATCHES], first[BATCHES];
    i32 ncol, nbatch, next;
    bool fails, flat;
    i32 released;
};

static void release_schema(struct ArrowSchema *s) {
    ((struct maker *)s->private_data)->released++;
    s->release = NULL;
}
static void release_array(struct ArrowArray *a) {
    ((struct maker *)a->private_data)->released++;
    a->release = NULL;
}

static int get_schema(struct ArrowArrayStream *s, struct ArrowSchema *out) {
    struct maker *m = s->private_data;
    *out = (struct ArrowSchema){.format = m->flat ? "g" : "+s", .n_children = m->ncol, .children = m->child,
                                .release = release_schema, .private_data = m};
    return 0;
}

static int get_next(struct ArrowArrayStream *s, struct ArrowArray *out) {
    static const void *none[1];
    struct maker *m = s->private_data;
    *out = (struct ArrowArray){0};
    if (m->fails && m->next == m->nbatch) return 5;
    if (m->next == m->nbatch) return 0;
    *out = (struct ArrowArray){.length = m->rows[m->next], .offset = m->first[m->next], .n_buffers = 1, .buffers = none,
                               .n_children = m->ncol, .children = m->part[m->next], .release = release_array, .private_data = m};
    m->next++;
    return 0;
}

static const char *last_error(struct ArrowArrayStream *s) {
    (void)s;
    return "the disk of the other library is gone";
}

static void release_stream(struct ArrowArrayStream *s) { s->release = NULL; }

static struct ArrowArrayStream stream_of(struct maker *m) {
    m->next = 0;
    for (i32 i = 0; i < m->ncol; i++) m->child[i] = &m->column[i];
    for (i32 b = 0; b < m->nbatch; b++)
        for (i32 i = 0; i < m->ncol; i++) m->part[b][i] = &m->array[b][i];
    return (struct ArrowArrayStream){get_schema, get_next, last_error, release_stream, m};
}

/* A column of batch b: its valid bits (NULL = all), values, and bytes of text; offset: cells before the first. */
static struct ArrowArray *put(struct maker *m, i32 b, i32 i, i64 rows, i64 offset, const void *valid, const void *data,
                              const void *text) {
    const void **to = m->buffer[b][i];
    to[0] = valid, to[1] = data, to[2] = text;
    m->array[b][i] = (struct ArrowArray){.length = rows, .null_count = valid ? -1 : 0, .offset = offset,
                                         .n_buffers = text ? 3 : 2, .buffers = to};
    return &m->array[b][i];
}

static void name(struct maker *m, i32 i, const char *what, const char *format) {
    m->column[i] = (struct ArrowSchema){.name = what, .format = format};
    m->ncol = imax(m->ncol, i + 1);
}

static err read_maker(struct maker *m, const struct read_options *o, struct frame **frame, struct table **out) {
    struct ArrowArrayStream s = stream_of(m);
    *out = NULL;
    TRY(frame_new(&s, "data frame", frame));
    assert_null(s.release);
    return table_read((*frame)->path, o, out);
}

/* ------------------------------------------------------------------ values -------------------------------------------------- */

static const i64 days_us[ROWS + 1] = {0, 1293840000000000, 1293926400000000, 1294012800000000, 1294099200000000,
                                      1294185600000000};
static const f64 y[ROWS + 1] = {9, 1.5, NAN, -2, 3, 4}, whole_y[ROWS] = {1.5, NAN, -2, 3, 4};
static const f32 f[ROWS + 1] = {9, .5f, 7, 2, .25f, 1};
static const int16_t n[ROWS + 1] = {9, 7, -9, 0, 1, 2};
static const u64 big[ROWS + 1] = {9, 1, 9223372036854775808u, 3, 4, 5};
static const u8 bits[1] = {0x2b};            /* from cell 1 on: 1 0 1 0 1 */
static const u8 without_second[1] = {0x3b};  /* from cell 1 on: 1 0 1 1 1 */
static const i32 ends[ROWS + 2] = {0, 1, 2, 2, 3, 5, 6};
static const int8_t codes[ROWS + 1] = {0, 1, 0, 1, 1, 0};
static const i64 word_ends[3] = {0, 1, 3};

static void fill(struct maker *m) {
    *m = (struct maker){.nbatch = 1, .rows = {ROWS}, .first = {1}};
    name(m, 0, "ds", "tsu:");
    name(m, 1, "y", "g");
    name(m, 2, "f", "f");
    name(m, 3, "n", "s");
    name(m, 4, "big", "L");
    name(m, 5, "b", "b");
    name(m, 6, "w", "u");
    name(m, 7, "c", "c");
    put(m, 0, 0, ROWS + 1, 0, NULL, days_us, NULL);
    put(m, 0, 1, ROWS + 1, 0, NULL, y, NULL);
    put(m, 0, 2, ROWS + 1, 0, without_second, f, NULL);
    put(m, 0, 3, ROWS + 1, 0, NULL, n, NULL);
    put(m, 0, 4, ROWS + 1, 0, NULL, big, NULL);
    put(m, 0, 5, ROWS + 1, 0, NULL, bits, NULL);
    put(m, 0, 6, ROWS + 1, 0, NULL, ends, "xaabba");
    m->word[7] = (struct ArrowSchema){.format = "U"};
    m->column[7].dictionary = &m->word[7];
    put(m, 0, 7, ROWS + 1, 0, without_second, codes, NULL)->dictionary = &m->words[0][7];
    m->word_buffer[0][7][1] = word_ends, m->word_buffer[0][7][2] = "pqq";
    m->words[0][7] = (struct ArrowArray){.length = 2, .n_buffers = 3, .buffers = m->word_buffer[0][7]};
}

/* The same rows; the columns of text are read as they would be from a file. */
static const char as_text[] = "ds,y,f,n,big,b,w,c\n2011-01-01,1.5,0.5,7,1,1,a,qq\n2011-01-02,,,-9,9223372036854775808,0,,\n"
                              "2011-01-03,-2,2,0,3,1,a,qq\n2011-01-04,3,0.25,1,4,0,bb,qq\n2011-01-05,4,1,2,5,1,a,p\n";

static struct table *csv_of(const char *text) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    T_OK(table_read(t_file("frame.csv", text), &o, &t));
    return t;
}

/* ------------------------------------------------------------------ tests --------------------------------------------------- */

TEST(frame_is_the_csv_table) {
    static struct maker m;
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct frame *frame;
    struct table *t, *csv = csv_of(as_text);
    fill(&m);
    T_OK(read_maker(&m, &o, &frame, &t));
    same_files(t, csv);
    table_free(t);
    T_OK(table_read(frame->path, &o, &t)); /* again */
    same_files(t, csv);
    table_free(t);
    table_free(csv);
    assert_int_equal(m.released, 0);
    frame_free(frame);
    assert_int_equal(m.released, 2); /* one batch and the schema */
}

TEST(doubles_are_lent_until_the_table_is_freed) {
    static struct maker m;
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct frame *frame;
    struct table *t;
    fill(&m);
    T_OK(read_maker(&m, &o, &frame, &t));
    assert_ptr_equal(t->col[1].number, y + 1);
    assert_int_equal(t->col[1].missing, 1);
    assert_int_equal(t->col[1].first_missing_line, 2);
    assert_ptr_not_equal(t->col[2].number, f + 1);
    frame_free(frame);
    assert_int_equal(m.released, 0); /* the table holds it */
    assert_memory_equal(t->col[1].number + 2, y + 3, 24);
    table_free(t);
    assert_int_equal(m.released, 2);
}

TEST(numbers_that_mean_missing_are_not_written_into_lent_memory) {
    static struct maker m;
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct frame *frame;
    struct table *t;
    o.more_na = "-2";
    fill(&m);
    T_OK(read_maker(&m, &o, &frame, &t));
    assert_ptr_not_equal(t->col[1].number, y + 1);
    assert_true(isnan(t->col[1].number[2]) && y[3] == -2);
    table_free(t);
    frame_free(frame);
}

TEST(batches_are_one_table) {
    static struct maker m;
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct frame *frame;
    struct table *t, *csv = csv_of("ds,y\n2011-01-01,1.5\n2011-01-02,\n2011-01-03,-2\n2011-01-04,3\n2011-01-05,4\n");
    m = (struct maker){.nbatch = 3, .rows = {2, 0, 3}};
    name(&m, 0, "ds", "tsu:");
    name(&m, 1, "y", "g");
    put(&m, 0, 0, 2, 1, NULL, days_us, NULL);
    put(&m, 0, 1, 2, 0, NULL, whole_y, NULL);
    put(&m, 1, 0, 0, 0, NULL, NULL, NULL);
    put(&m, 1, 1, 0, 0, NULL, NULL, NULL);
    put(&m, 2, 0, 3, 3, NULL, days_us, NULL);
    put(&m, 2, 1, 3, 2, NULL, whole_y, NULL);
    T_OK(read_maker(&m, &o, &frame, &t));
    same_files(t, csv);
    table_free(t);
    table_free(csv);
    frame_free(frame);
    assert_int_equal(m.released, 4);
}

/* A view of a text: inside for 12 bytes at most, else a place in buffer `number`. */
struct view {
    i32 n;
    char inside[4];
    i32 number, at;
};

TEST(text_views_are_words) {
    static struct maker m;
    static const char far[] = "..a long name of a station";
    static struct view view[3] = {{.n = 2, .inside = "ab"}, {.n = 24, .inside = "a lo", .number = 0, .at = 2}, {.n = 0}};
    static const f64 v[3] = {1, 2, 3};
    static const u8 two[1] = {3};
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct frame *frame;
    struct table *t;
    m = (struct maker){.nbatch = 1, .rows = {3}};
    name(&m, 0, "w", "vu");
    name(&m, 1, "y", "g");
    put(&m, 0, 0, 3, 0, two, view, far)->n_buffers = 4;
    put(&m, 0, 1, 3, 0, NULL, v, NULL);
    T_OK(read_maker(&m, &o, &frame, &t));
    assert_int_equal(t->col[0].nword, 2);
    assert_string_equal(t->col[0].word[0], "ab");
    assert_string_equal(t->col[0].word[1], "a long name of a station");
    assert_int_equal(t->col[0].code[2], -1);
    table_free(t);
    frame_free(frame);
}

TEST(times_keep_their_zone) {
    static struct maker m;
    static const i64 at[2] = {1293840000, 1293843600};
    static const f64 v[2] = {1, 2};
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct frame *frame;
    struct table *t, *csv = csv_of("ds,y\n2011-01-01 02:00+02:00,1\n2011-01-01 03:00+02:00,2\n");
    m = (struct maker){.nbatch = 1, .rows = {2}};
    name(&m, 0, "ds", "tss:+02:00");
    name(&m, 1, "y", "g");
    put(&m, 0, 0, 2, 0, NULL, at, NULL);
    put(&m, 0, 1, 2, 0, NULL, v, NULL);
    T_OK(read_maker(&m, &o, &frame, &t));
    same_files(t, csv);
    table_free(t);
    table_free(csv);
    frame_free(frame);
}

static void refuse(struct maker *m, i32 code, const char *what) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct frame *frame = NULL;
    struct table *t;
    T_FAILS(read_maker(m, &o, &frame, &t), code);
    if (!strstr(err_last()->text, what)) fail_msg("\"%s\" does not say \"%s\"", err_last()->text, what);
    frame_free(frame);
}

TEST(what_is_no_table_of_known_types_is_refused) {
    static struct maker m;
    fill(&m);
    m.column[1].format = "+l";
    refuse(&m, 214, "column \"y\" is a list");
    fill(&m);
    m.column[1].format = "e";
    refuse(&m, 214, "half float");
    fill(&m);
    m.flat = true;
    refuse(&m, 202, "no table");
    fill(&m);
    m.fails = true;
    refuse(&m, 202, "the disk of the other library is gone");
    assert_int_equal(m.released, 2);
    fill(&m);
    m.nbatch = 0;
    refuse(&m, 201, "no rows");
    fill(&m);
    m.array[0][2].length = 2;
    refuse(&m, 202, "another number of rows");
    fill(&m);
    m.column[1].name = "\xff";
    refuse(&m, 202, "UTF-8");
    fill(&m);
    m.column[7].format = "f";
    refuse(&m, 214, "dictionary");
    fill(&m);
    m.array[0][1].n_buffers = 1;
    refuse(&m, 202, "no buffer of values");
    fill(&m);
    m.buffer[0][3][1] = NULL;
    refuse(&m, 202, "no buffer of values");
    fill(&m);
    m.array[0][2].offset = -5;
    refuse(&m, 202, "impossible place");
    fill(&m);
    m.array[0][7].dictionary = NULL;
    refuse(&m, 202, "no dictionary");
}

TEST(a_path_of_no_frame_is_refused) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    T_FAILS(table_read("memory:99999:data frame", &o, &t), 701);
    assert_string_equal(err_last()->where, "data frame");
    struct file_in in;
    T_FAILS(file_open("memory:99999:data frame", &in), 701);
}

T_MAIN(cmocka_unit_test(frame_is_the_csv_table), cmocka_unit_test(doubles_are_lent_until_the_table_is_freed),
       cmocka_unit_test(numbers_that_mean_missing_are_not_written_into_lent_memory), cmocka_unit_test(batches_are_one_table),
       cmocka_unit_test(text_views_are_words), cmocka_unit_test(times_keep_their_zone),
       cmocka_unit_test(what_is_no_table_of_known_types_is_refused), cmocka_unit_test(a_path_of_no_frame_is_refused))
