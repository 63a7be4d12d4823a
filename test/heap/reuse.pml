/* SPDX-License-Identifier: MIT */
/* src/heap/thread_cache.h and monitor.h: a block that its threads free and reuse, or resize, again and
 * again, with one of two sizes, so that the tail of one lies where the other has a byte of the program's;
 * and the monitor, which copies it word by word. In all interleavings a tail is reported only if it was
 * overwritten while that very block was live; one that was overwritten before a check began and is live
 * until its end is reported; and the head is valid at any moment, so that a thread may stop there. Stores
 * become visible in the order of block_make_live and block_change. */
#define TURNS 2
#define LOOKS 2
#define FREED 200  /* a canary that is valid with any other words of the head */
#define RESIZED 201  /* the same, while a live block is being resized */
#define OTHER 99   /* a byte of the program */
#define LIVE(s, t) (10 + (t) * 2 + (s))

byte size, ticket, canary = FREED, tail[2];
byte turn;
bool alive, overran[TURNS + 1];

inline make_live(s)
{
    turn++;
    size = s;
    ticket = turn;
    tail[s] = LIVE(s, turn);
    atomic { canary = LIVE(s, turn); alive = true }
}

inline use()
{
    if :: size == 1 -> tail[0] = OTHER :: else fi;
    if :: atomic { true -> tail[size] = OTHER; overran[turn] = true } :: true fi
}

inline release() { atomic { alive = false; canary = FREED } }

inline resize() { atomic { alive = false; canary = RESIZED } }

active proctype program()
{
    do
    :: turn < TURNS -> if :: make_live(0) :: make_live(1) fi; use(); if :: release() :: resize() fi
    :: else -> break
    od
}

byte looks, began, s, t, c, seen, s2, t2, c2;
bool wrong_before, reported;
active proctype monitor()
{
    do
    :: looks < LOOKS ->
        looks++;
        atomic { began = turn; wrong_before = alive && overran[turn]; reported = false };
        s = size; t = ticket; c = canary;
        if
        :: c == LIVE(s, t) ->
            seen = tail[s];
            if
            :: seen != c ->
                s2 = size; t2 = ticket; c2 = canary;
                if
                :: s2 == s && t2 == t && c2 == c -> assert(overran[t]); reported = true
                :: else
                fi
            :: else
            fi
        :: else
        fi;
        atomic { assert(!(wrong_before && alive && turn == began) || reported) }
    :: else -> break
    od
}

active proctype at_any_moment()
{
    assert(canary == FREED || canary == RESIZED || canary == LIVE(size, ticket))
}
