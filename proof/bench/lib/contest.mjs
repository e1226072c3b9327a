import { WrongAnswerError } from "./load.mjs";

/** @typedef {import("../load/turn.mjs").Figure} Figure */
/** @typedef {{ durationMs: number, maxCalls: number }} Limit */
/** @typedef {{ turn(limit: Limit): Promise<Figure>, peakBytes(): number, close(): Promise<void> }} Subject */
/** @typedef {{ name: string, open(): Promise<Subject> }} Entry */
/** @typedef {{ rounds: number, turnMs: number, turnCalls?: number, warmUp: Limit & { turns: number } }} Plan a warm-up, and a turn, ends with whichever of its limits comes first */
/** @typedef {{ name: string, figures: Figure[], peakBytes: number, problem?: string, isWrong?: boolean }} Standing */
/** @typedef {{ section: string, name: string, standings: Standing[] }} Contest */

/**
 * Measures systems under one load: all are started, warmed up, and then take turns, so that whatever else the machine
 * does meets all of them alike. Who fails is left out from then on, and says why.
 *
 * @param {{ section: string, name: string, entries: readonly Entry[], plan: Plan, onStep: (done: string) => void }} contest
 * @returns {Promise<Contest>}
 */
export async function hold({ section, name, entries, plan, onStep }) {
  /** @type {(Standing & { subject?: Subject })[]} */
  const field = await Promise.all(entries.map((entry) => open(entry)));
  try {
    await warmUpAll(field, plan.warmUp, (system) => onStep(`${name}: ${system} warms up`));
    const turn = { durationMs: plan.turnMs, maxCalls: plan.turnCalls ?? Number.MAX_SAFE_INTEGER };
    for (let round = 0; round < plan.rounds; round++) {
      // Nobody always goes first.
      const first = round % field.length;
      for (const each of [...field.slice(first), ...field.slice(0, first)]) {
        onStep(`${name}: round ${round + 1} of ${plan.rounds}, ${each.name}`);
        await attempt(each, async (subject) => void each.figures.push(await subject.turn(turn)));
      }
    }
    for (const each of field) each.peakBytes = each.subject?.peakBytes() ?? 0;
  } finally {
    await Promise.all(field.map(async ({ subject }) => subject?.close()));
  }
  for (const each of field) delete each.subject;
  return { section, name, standings: field };
}

/**
 * Two at a time: nothing is measured yet, and a slow system leaves the load process and a core idle.
 *
 * @param {readonly (Standing & { subject?: Subject })[]} field
 * @param {Plan["warmUp"]} limit
 * @param {(system: string) => void} onStart
 */
async function warmUpAll(field, limit, onStart) {
  const waiting = [...field];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      onStart(next.name);
      await attempt(next, (subject) => warmUp(subject, limit));
    }
  };
  await Promise.all([work(), work()]);
}

/**
 * Connections that come and go make V8 think again about what it has compiled, so a warm-up has several turns too.
 *
 * @param {Subject} subject
 * @param {Plan["warmUp"]} limit
 */
async function warmUp(subject, { turns, durationMs, maxCalls }) {
  const turn = { durationMs: durationMs / turns, maxCalls: maxCalls / turns };
  for (let count = 0; count < turns; count++) await subject.turn(turn);
}

/** @param {Entry} entry @returns {Promise<Standing & { subject?: Subject }>} */
async function open(entry) {
  /** @type {Standing & { subject?: Subject }} */
  const standing = { name: entry.name, figures: [], peakBytes: 0 };
  try {
    standing.subject = await entry.open();
  } catch (error) {
    fail(standing, error);
  }
  return standing;
}

/** @param {Standing & { subject?: Subject }} standing @param {(subject: Subject) => Promise<void>} work */
async function attempt(standing, work) {
  const { subject } = standing;
  if (subject === undefined) return;
  try {
    await work(subject);
  } catch (error) {
    fail(standing, error);
    delete standing.subject;
    await subject.close();
  }
}

/** @param {Standing} standing @param {unknown} error */
function fail(standing, error) {
  standing.problem = error instanceof Error ? error.message : String(error);
  standing.isWrong = error instanceof WrongAnswerError;
  standing.figures = [];
}
