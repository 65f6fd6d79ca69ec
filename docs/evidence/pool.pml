/* The protocol of the pool of threads (src/supple/runtime/pool_ir.py), for the model checker spin.
 *
 *   spin -a pool.pml && cc -O2 -o pan pan.c && ./pan -a -f -m1000000 -N done        (what is checked: see below)
 *   spin -DSLEEPY ...     the caller takes no ticket back: every worker has to come, so a lost wake-up hangs
 *
 * Assertions: a chunk runs once, for the job that is written down. No invalid end states: nobody waits for nothing.
 * `done`: with fair scheduling the caller finishes all jobs.
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef JOBS
#define JOBS 2
#endif
#ifndef CHUNKS
#define CHUNKS 3
#endif

byte ticket[WORKERS];           /* 1: the worker is asked to take part */
bool parked[WORKERS];           /* the worker sleeps, or is about to */
bool worker_sleeps[WORKERS];    /* inside the system call */
byte pending;                   /* workers that are asked and not done */
byte next;                      /* the next chunk that nobody has taken */
bool waits;                     /* the caller sleeps, or is about to */
bool caller_sleeps;
byte job;                       /* the job that is written down */
byte ran[JOBS * CHUNKS];
bool finished;

ltl done { <> finished }

inline run_chunk(j, c) {
    atomic {
        assert(j == job);
        assert(ran[j * CHUNKS + c] == 0);
        ran[j * CHUNKS + c] = 1
    }
}

inline run_chunks(j, c) {
    do
    :: atomic { c = next; next++ };
       if
       :: c < CHUNKS -> run_chunk(j, c)
       :: else -> break
       fi
    od
}

active proctype caller() {
    byte i, k, left, c;
    bool mine;
    do
    :: k < JOBS ->
        atomic { job = k; pending = WORKERS; next = 0; waits = false }    /* nobody else looks at these between jobs */
        i = 0;
        do
        :: i < WORKERS ->
            ticket[i] = 1;
            if
            :: parked[i] -> worker_sleeps[i] = false            /* wake */
            :: else
            fi;
            i++
        :: else -> break
        od;
        run_chunks(k, c);
#ifndef SLEEPY
        i = WORKERS;
        do
        :: i > 0 ->
            i--;
            atomic { mine = (ticket[i] == 1); if :: mine -> ticket[i] = 0 :: else fi };
            if
            :: mine -> pending--
            :: else
            fi
        :: else -> break
        od;
#endif
        do
        :: pending == 0 -> break
        :: pending != 0 ->                                      /* or looks again, for a while */
            waits = true;
            do
            :: left = pending;
               if
               :: left == 0 -> break
               :: else ->
                   atomic { if :: pending == left -> caller_sleeps = true :: else fi };
                   !caller_sleeps
               fi
            od;
            break
        od;
        k++
    :: else -> break
    od;
    i = 0;
    do
    :: i < JOBS * CHUNKS -> assert(ran[i] == 1); i++
    :: else -> break
    od;
    finished = true
}

proctype worker(byte me) {
    byte mine_job, before, c;
    bool mine;
end:do
    :: ticket[me] == 1 ->
        atomic { mine = (ticket[me] == 1); if :: mine -> ticket[me] = 0 :: else fi };
        if
        :: mine ->
            mine_job = job;
            run_chunks(mine_job, c);
            atomic { before = pending; pending-- };
            if
            :: before == 1 ->
                if
                :: waits -> caller_sleeps = false               /* wake */
                :: else
                fi
            :: else
            fi
        :: else
        fi
    :: ticket[me] == 0 ->                                       /* or looks again, for a while */
        parked[me] = true;
        do
        :: ticket[me] != 0 -> break
        :: else ->
            atomic { if :: ticket[me] == 0 -> worker_sleeps[me] = true :: else fi };
end_asleep: !worker_sleeps[me]
        od;
        parked[me] = false
    od
}

init {
    byte i;
    atomic {
        do
        :: i < WORKERS -> run worker(i); i++
        :: else -> break
        od
    }
}
