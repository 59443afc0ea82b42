/* team.c - a team of threads that run the same function, and a clock of their waiting times.
 *
 * Everything rests on the *gate*: a counter that one thread advances and others wait on. Waiting spins first, as the
 * next piece of work is mostly microseconds away, and then sleeps, so that an idle program uses no processor. A run is:
 * the caller writes the job and advances the `start` gate; everyone runs the job; everyone meets at the barrier.
 * A caller that does not want to wait for sleepers wakes them and works alone; they spin until it is done, and for a while after.
 *
 * Why no wake-up is lost: a sleeper raises `sleepers` and then reads the counter; the thread that advances writes the
 * counter and then reads `sleepers`. All four are sequentially consistent, so one of the two sees the other. If it is the
 * sleeper, it does not sleep. If it is the other, it takes the lock, which the sleeper holds until it is truly waiting. */
#define _GNU_SOURCE /* sched_getcpu */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

/* Spins take about 25 ns: 1 ms before sleep, as waking a thread on an idle processor of a virtual machine takes up to 4 ms; 20 ms while held. */
enum { SPINS = 40000, HELD_SPINS = 20 * SPINS, CACHE_LINE = 64 };

struct gate {
    _Alignas(CACHE_LINE) atomic_uint count;
    atomic_uint calls; /* to stop sleeping without an advance */
    atomic_bool held;  /* an advance is expected soon: spin for longer, unless on the processor `holder` */
    atomic_int holder;
    atomic_int sleepers;
    _Alignas(CACHE_LINE) pthread_mutex_t lock;
    pthread_cond_t advanced;
};

struct worker {
    hl_team *team;
    pthread_t thread;
    int index;
};

struct hl_team {
    int size;
    pid_t owner; /* the process that has the threads */
    int spins;   /* 0 if there are more threads than processors: spinning would keep the others from working */
    bool stop;
    void (*job)(void *user, int thread);
    void *user;
    struct gate start;   /* counts runs */
    struct gate barrier; /* counts meetings */
    _Alignas(CACHE_LINE) atomic_int arrived;
    atomic_llong waited;     /* nanoseconds of all threads at the barrier */
    struct worker workers[]; /* size - 1, for the threads 1, 2, ... */
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool gate_init(struct gate *gate)
{
    atomic_init(&gate->count, 0);
    atomic_init(&gate->calls, 0);
    atomic_init(&gate->held, false);
    atomic_init(&gate->holder, -1);
    atomic_init(&gate->sleepers, 0);
    if (pthread_mutex_init(&gate->lock, NULL))
        return false;
    if (pthread_cond_init(&gate->advanced, NULL)) {
        pthread_mutex_destroy(&gate->lock);
        return false;
    }
    return true;
}

static void gate_destroy(struct gate *gate)
{
    pthread_cond_destroy(&gate->advanced);
    pthread_mutex_destroy(&gate->lock);
}

/* Add to the count or to the calls. */
static void gate_signal(struct gate *gate, atomic_uint *counter)
{
    atomic_fetch_add(counter, 1);
    if (atomic_load(&gate->sleepers)) {
        pthread_mutex_lock(&gate->lock);
        pthread_cond_broadcast(&gate->advanced);
        pthread_mutex_unlock(&gate->lock);
    }
}

static void gate_advance(struct gate *gate)
{
    gate_signal(gate, &gate->count);
}

/* The kernel often wakes a thread on the processor of the thread that called it, and moves it only milliseconds later. Go to another
 * processor now; false if there is none. */
static bool leave_processor(int processor)
{
    cpu_set_t allowed, others;

    if (processor < 0 || sched_getcpu() != processor)
        return true;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return false;
    others = allowed;
    CPU_CLR((size_t)processor, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others))
        return false;
    sched_setaffinity(0, sizeof allowed, &allowed);
    return sched_getcpu() != processor;
}

/* Has the gate's count changed from `seen` while spinning? */
static bool gate_spin(struct gate *gate, unsigned seen, int spins)
{
    int held = spins ? HELD_SPINS : 0;
    for (int i = 0; i < spins; i++) {
        if (atomic_load(&gate->count) != seen)
            return true;
        if (held > 0 && atomic_load_explicit(&gate->held, memory_order_relaxed)) {
            if (!leave_processor(atomic_load_explicit(&gate->holder, memory_order_relaxed)))
                return false; /* it would keep the caller from working */
            held--;
            i = 0;
        }
        pause_briefly();
    }
    return false;
}

/* Wait until the gate's count is no longer `seen`. */
static void gate_wait(struct gate *gate, unsigned seen, int spins)
{
    while (!gate_spin(gate, seen, spins)) {
        unsigned calls;
        pthread_mutex_lock(&gate->lock);
        atomic_fetch_add(&gate->sleepers, 1);
        calls = atomic_load(&gate->calls);
        while (atomic_load(&gate->count) == seen && atomic_load(&gate->calls) == calls)
            pthread_cond_wait(&gate->advanced, &gate->lock);
        atomic_fetch_sub(&gate->sleepers, 1);
        pthread_mutex_unlock(&gate->lock);
        if (atomic_load(&gate->count) != seen)
            return;
    }
}

static long long nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

double hl_clock(void)
{
    return 1e-9 * (double)nanoseconds();
}

double hl_team_waited(const hl_team *team)
{
    return 1e-9 * (double)atomic_load_explicit(&team->waited, memory_order_relaxed);
}

int hl_team_size(const hl_team *team)
{
    return team->size == 1 || getpid() != team->owner ? 1 : team->size;
}

bool hl_team_asleep(hl_team *team)
{
    return team->size > 1 && atomic_load_explicit(&team->start.sleepers, memory_order_relaxed) > 0;
}

void hl_team_wake(hl_team *team)
{
    atomic_store(&team->start.holder, sched_getcpu());
    atomic_store(&team->start.held, true);
    gate_signal(&team->start, &team->start.calls);
}

void hl_team_release(hl_team *team)
{
    atomic_store(&team->start.held, false);
}

void hl_team_barrier(hl_team *team)
{
    unsigned seen;

    if (team->size == 1)
        return;
    seen = atomic_load(&team->barrier.count); /* cannot advance before this thread arrives */
    if (atomic_fetch_add(&team->arrived, 1) + 1 == team->size) {
        atomic_store(&team->arrived, 0);
        gate_advance(&team->barrier);
    } else if (atomic_load(&team->barrier.count) == seen) {
        long long from = nanoseconds();
        gate_wait(&team->barrier, seen, team->spins);
        atomic_fetch_add_explicit(&team->waited, nanoseconds() - from, memory_order_relaxed);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    hl_team *team = worker->team;

    for (unsigned runs = 0;; runs++) {
        gate_wait(&team->start, runs, team->spins);
        if (team->stop)
            return NULL;
        team->job(team->user, worker->index);
        hl_team_barrier(team);
    }
}

void hl_team_run(hl_team *team, void (*job)(void *user, int thread), void *user)
{
    team->size = hl_team_size(team); /* 1 from now on, in a child */
    if (team->size == 1) {
        job(user, 0);
        return;
    }
    team->job = job;
    team->user = user;
    gate_advance(&team->start);
    job(user, 0);
    hl_team_barrier(team);
}

/* Start worker threads until one fails; return how many run. They block all signals, which are the program's business. */
static int start_workers(hl_team *team)
{
    sigset_t all, before;
    int started = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < team->size - 1) {
        struct worker *worker = &team->workers[started];

        worker->team = team;
        worker->index = started + 1;
        if (pthread_create(&worker->thread, NULL, work, worker))
            break;
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void stop_workers(hl_team *team, int started)
{
    team->stop = true;
    gate_advance(&team->start);
    for (int i = 0; i < started; i++)
        pthread_join(team->workers[i].thread, NULL);
    gate_destroy(&team->barrier);
    gate_destroy(&team->start);
}

/* All that a team of more than one thread needs. On failure nothing is left behind. */
static hl_status start(hl_context *ctx, hl_team *team)
{
    int started;

    if (!gate_init(&team->start))
        return hl_fail(ctx, HL_ERR_NOMEM, "cannot create a lock");
    if (!gate_init(&team->barrier)) {
        gate_destroy(&team->start);
        return hl_fail(ctx, HL_ERR_NOMEM, "cannot create a lock");
    }
    started = start_workers(team);
    if (started < team->size - 1) {
        stop_workers(team, started);
        return hl_fail(ctx, HL_ERR_NOMEM, "cannot start thread %d of %d", started + 2, team->size);
    }
    return HL_OK;
}

hl_status hl_team_create(hl_context *ctx, int threads, hl_team **team)
{
    hl_status status = HL_OK;
    hl_team *t;

    *team = NULL;
    if (threads < 1)
        return hl_fail(ctx, HL_ERR_INVALID, "a team needs at least one thread, not %d", threads);
    t = hl_calloc(ctx, 1, sizeof *t + (size_t)(threads - 1) * sizeof t->workers[0]);
    if (!t)
        return HL_ERR_NOMEM;
    t->size = threads;
    t->owner = getpid();
    t->spins = threads <= hl_threads_available() ? SPINS : 0;
    atomic_init(&t->arrived, 0);
    atomic_init(&t->waited, 0);
    if (threads > 1)
        status = start(ctx, t);
    if (status) {
        hl_free(ctx, t);
        return status;
    }
    *team = t;
    return HL_OK;
}

void hl_team_free(hl_context *ctx, hl_team *team)
{
    if (!team)
        return;
    if (hl_team_size(team) > 1)
        stop_workers(team, team->size - 1);
    hl_free(ctx, team);
}
