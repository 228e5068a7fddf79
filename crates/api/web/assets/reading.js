// Reads data from the server, and retries until the read succeeds.

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 3_000;

/**
 * Returns a function that requests a read. The first request reads at once. A later request waits for `delay`, so
 * that several requests cause only one read. Two reads never overlap. A request during a read causes another read
 * afterwards; a failed read is repeated. `signal` ends all reads.
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
      // The person learns from the event stream whether the daemon is reachable, so no error is shown here.
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
