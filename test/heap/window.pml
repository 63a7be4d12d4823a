/* SPDX-License-Identifier: MIT */
/* src/heap/producer.h: a thread's window, which the deliverer empties without the thread's cooperation. In
 * all interleavings each word is delivered once or removed; the two are never in the window at once; an
 * exact round brings every notice that was put before it was requested. The thread's store to `busy` may be
 * delayed past its load of `steal`, as processors do: the store buffer is `pending`; the deliverer's
 * membarrier empties it. */
#define BLOCKS 3
#define ROUNDS 2

mtype = { IDLE, WINDOW, RING, NOT_ASKED, ASKED, TAKEN, SERVED };
mtype busy = IDLE, pending = IDLE, steal = NOT_ASKED;
bool has_pending, in_window, taking;
byte window[2 * BLOCKS], count;           /* words, + 100: notices */
byte ring[4 * BLOCKS], ring_put, ring_taken;
byte delivered[BLOCKS + 1], notices[BLOCKS + 1], removed[BLOCKS + 1];
bool given_back[BLOCKS + 1];

inline flush() { if :: has_pending -> busy = pending; has_pending = false :: else fi }
inline push(word) { ring[ring_put] = word; ring_put++ }

/* The processor may complete a store at any time. */
active proctype store_buffer()
{
end:
    do
    :: atomic { has_pending -> busy = pending; has_pending = false }
    od
}

byte i;
inline empty_window()
{
    i = 0;
    do
    :: i < count -> if :: window[i] -> push(window[i]) :: else fi; i++
    :: else -> break
    od;
    count = 0
}

inline enter(where)
{
    atomic { flush(); pending = WINDOW; has_pending = true };
    if
    :: steal == NOT_ASKED -> where = WINDOW
    :: else ->
        if
        :: atomic { steal == ASKED -> flush(); steal = SERVED };  /* a locked instruction */
            in_window = true; assert(!taking);
            empty_window();
            in_window = false;
            atomic { flush(); steal = NOT_ASKED };
            where = WINDOW
        :: atomic { steal == NOT_ASKED -> flush(); where = WINDOW }
        :: atomic { (steal == TAKEN) -> flush(); busy = RING; where = RING }
        fi
    fi
}

inline leave() { atomic { flush(); busy = IDLE } }

active proctype thread()
{
    byte block = 1, at;
    mtype where;
    do
    :: block <= BLOCKS ->
        enter(where);
        if
        :: where == WINDOW ->
            in_window = true; assert(!taking);
            window[count] = block; count++;
            in_window = false
        :: else -> push(block)
        fi;
        leave();
        if
        :: true ->  /* free it */
            enter(where);
            if
            :: where == WINDOW ->
                in_window = true; assert(!taking);
                at = 0;
                do
                :: at < count && window[at] != block -> at++
                :: else -> break
                od;
                if
                :: at < count -> window[at] = 0; removed[block]++
                :: else -> window[count] = block + 100; count++
                fi;
                in_window = false
            :: else -> push(block + 100)
            fi;
            leave();
            given_back[block] = true
        :: true
        fi;
        block++
    :: else -> break
    od
}

byte word;
inline deliver(w)
{
    word = w;
    if
    :: word > 100 -> notices[word - 100]++; assert(notices[word - 100] == 1)
    :: word > 0 && word <= 100 -> delivered[word]++; assert(delivered[word] == 1)
    :: else
    fi
}

inline round()
{
    if :: atomic { steal == NOT_ASKED -> steal = ASKED } :: else fi;
    atomic { flush() };  /* membarrier */
    do
    :: steal == NOT_ASKED -> break
    :: steal == SERVED -> skip
    :: steal == ASKED && busy == WINDOW -> skip
    :: atomic { steal == ASKED && busy != WINDOW -> busy_seen = true };
        /* Between the read of busy and the claim anything can happen. */
        if
        :: atomic { steal == ASKED -> steal = TAKEN };
            taking = true; assert(!in_window);
            k = 0;
            do
            :: k < count -> deliver(window[k]); k++
            :: else -> break
            od;
            count = 0;
            taking = false;
            steal = NOT_ASKED;
            break
        :: else
        fi
    od;
    do
    :: ring_taken < ring_put -> deliver(ring[ring_taken]); ring_taken++
    :: else -> break
    od
}

active proctype deliverer()
{
    byte rounds = 0, k, b;
    bool busy_seen, was_given_back[BLOCKS + 1];
    do
    :: rounds < ROUNDS ->
        atomic {
            b = 1;
            do :: b <= BLOCKS -> was_given_back[b] = given_back[b]; b++ :: else -> break od
        };
        round();
        b = 1;
        do
        :: b <= BLOCKS ->
            assert(!was_given_back[b] || removed[b] || notices[b]);
            assert(!(removed[b] && notices[b]));
            assert(!(removed[b] && delivered[b]));
            b++
        :: else -> break
        od;
        rounds++
    :: else -> break
    od
}
