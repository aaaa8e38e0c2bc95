/* line.c - a line of a stated rate and delay between two network namespaces, where the kernel has no netem: two TUN devices, and
 * threads that carry packets from one to the other.
 *
 *     namespace A  l0 --read--> | ring: packet, when it arrives | --write--> l0  namespace B          and the same the other way
 *
 *     line A B BITS_PER_SECOND DELAY_SECONDS     makes l0 in both, prints "ready", runs until it is ended
 *
 * A packet leaves when those before it have left, takes its bits over the rate, and arrives a delay later. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { RING = 128, MOST = 65536 };

struct way {
    int from, to;
    double rate, delay, is_free; /* when the last packet has left */
    unsigned long head, tail;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct {
        double due;
        int bytes;
        char data[MOST];
    } slot[RING];
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double when) {
    const struct timespec t = {.tv_sec = (time_t)when, .tv_nsec = (long)(1e9 * (when - (double)(time_t)when))};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void *take(void *self) {
    struct way *w = self;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (w->head - w->tail == RING) pthread_cond_wait(&w->changed, &w->lock);
        pthread_mutex_unlock(&w->lock);
        const unsigned long k = w->head % RING;
        const ssize_t n = read(w->from, w->slot[k].data, MOST);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) exit(1);
        const double t = now();
        w->is_free = (w->is_free > t ? w->is_free : t) + 8 * (double)n / w->rate;
        w->slot[k].due = w->is_free + w->delay;
        w->slot[k].bytes = (int)n;
        pthread_mutex_lock(&w->lock);
        w->head++;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
    }
}

static void *give(void *self) {
    struct way *w = self;
    for (;;) {
        pthread_mutex_lock(&w->lock);
        while (w->head == w->tail) pthread_cond_wait(&w->changed, &w->lock);
        pthread_mutex_unlock(&w->lock);
        const unsigned long k = w->tail % RING;
        if (w->slot[k].due > now()) sleep_until(w->slot[k].due);
        if (write(w->to, w->slot[k].data, (size_t)w->slot[k].bytes) < 0 && errno == EBADF) exit(1); /* else lost, as on a line */
        pthread_mutex_lock(&w->lock);
        w->tail++;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
    }
}

/* The device l0 of a namespace; this thread stays in it. */
static int device(const char *space) {
    char path[200];
    struct ifreq r = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(path, sizeof path, "/run/netns/%s", space);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) return perror(path), -1;
    close(fd);
    snprintf(r.ifr_name, sizeof r.ifr_name, "l0");
    const int own = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (own < 0 || ioctl(own, TUNSETIFF, &r) != 0) return perror("/dev/net/tun"), -1;
    return own;
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int a = device(argv[1]), b = device(argv[2]);
    if (a < 0 || b < 0) return 77;
    struct way *way = calloc(2, sizeof *way);
    if (!way) return 1;
    pthread_t thread;
    for (int k = 0; k < 2; k++) {
        way[k].from = k ? b : a;
        way[k].to = k ? a : b;
        way[k].rate = atof(argv[3]);
        way[k].delay = atof(argv[4]);
        pthread_mutex_init(&way[k].lock, NULL);
        pthread_cond_init(&way[k].changed, NULL);
        if (pthread_create(&thread, NULL, take, &way[k]) != 0 || pthread_create(&thread, NULL, give, &way[k]) != 0) return 1;
    }
    puts("ready");
    fflush(stdout);
    pthread_join(thread, NULL);
    return 0;
}
