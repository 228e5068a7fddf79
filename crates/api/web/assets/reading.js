// A reading that has to succeed: what could not be read stays wanted, and is tried again.

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 3_000;

/**
 * Makes a function that asks for a reading: at once the first time, then a while after the first of several wishes; never
 * two at a time, and again whenever somebody wished for it meanwhile or it has failed. Ends with `signal`.
 */
export function kept(read, { delay = 100, signal, later = setTimeout } = {}) {
  let first = true;
  let wanted = 0;
  let done = 0;
  let planned = false;
  let pause = FIRST_PAUSE_MS;

  function plan(after) {
    if (planned || signal?.aborted) return;
    planned = true;
    later(attempt, after);
  }

  async function attempt() {
    const goal = wanted;
    let next = delay;
    try {
      if (!signal?.aborted) await read();
      done = goal;
      pause = FIRST_PAUSE_MS;
    } catch {
      // Whether the daemon is there at all is told by the stream.
      next = pause;
      pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
    }
    planned = false;
    if (done < wanted) plan(next);
  }

  return () => {
    wanted += 1;
    plan(first ? 0 : delay);
    first = false;
  };
}
