/* SPDX-License-Identifier: MIT */
/* src/heap/block_list.c: a deliverer that adds and a monitor that removes, with nodes of one word each. In
 * all interleavings no word is lost, none is met twice in one pass, and no node is used by both sides. Node
 * 0 is the head. A removed node goes back to the deliverer, which reuses it. */
#define NODES 5
#define WORDS 5
#define PASSES 3

byte next[NODES], word[NODES];  /* next: 0 ends the list */
byte made = 0;
bool spare[NODES];
bool added[WORDS + 1], removed[WORDS + 1];

active proctype deliverer()
{
    byte w = 1, n, i;
    do
    :: w <= WORDS ->
        n = 0;
        atomic {  /* the exchange takes the whole list; nodes behind the first stay the deliverer's */
            i = 1;
            do
            :: i < NODES && !n && spare[i] -> n = i; spare[i] = false; i++
            :: i < NODES && !(!n && spare[i]) -> i++
            :: else -> break
            od
        };
        if
        :: !n && made + 1 < NODES -> made++; n = made
        :: else
        fi;
        if
        :: n ->
            next[n] = next[0];
            word[n] = w;
            added[w] = true;
            next[0] = n;
            w++
        :: else -> break  /* all nodes are in use: enough for this model */
        fi
    :: else -> break
    od
}

active proctype monitor()
{
    byte passes = 0, first, before, n;
    byte seen[WORDS + 1], b;
    bool known[WORDS + 1];
    do
    :: passes < PASSES ->
        b = 0;
        do :: b <= WORDS -> seen[b] = 0; b++ :: else -> break od;
        atomic {  /* words whose adding was complete when the pass began */
            b = 1;
            do :: b <= WORDS -> known[b] = false; b++ :: else -> break od;
            n = next[0];
            do :: n -> known[word[n]] = true; n = next[n] :: else -> break od
        };
        first = next[0];
        before = first;
        if
        :: first ->
            seen[word[first]]++;
            do
            :: next[before] ->
                n = next[before];
                assert(!spare[n]);
                seen[word[n]]++;
                assert(seen[word[n]] == 1);
                assert(!removed[word[n]]);
                if
                :: true -> removed[word[n]] = true; next[before] = next[n]; spare[n] = true
                :: true -> before = n
                fi
            :: else -> break
            od
        :: else
        fi;
        b = 1;
        do
        :: b <= WORDS -> assert(!known[b] || seen[b] == 1); b++
        :: else -> break
        od;
        passes++
    :: else -> break
    od
}
