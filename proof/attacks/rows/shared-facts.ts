import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { connectRedisStore } from "../../../packages/junctor/src/cluster/redis-store.ts";
import { SharedRevocations } from "../../../packages/junctor/src/cluster/revocations.ts";
import { createVirtualClock } from "../../../packages/junctor/src/testing/virtual-clock.ts";
import { startEngine } from "../../../test/cluster/support/engine.ts";
import { secret } from "../../../test/cluster/support/stage.ts";
import { freePort } from "../../../test/support/free-ports.ts";
import { runSpread } from "../../../test/support/limit-spread.ts";
import { attempt, type Line, type Row, type Scale, seed, toText } from "../lib/row.ts";
import { createChance } from "../simulation/chance.ts";

const limits = [1, 7, 20, 60, 120, 300];

/** Callers of three replicas, each with a limit, a seed and a part of the limit that it uses. */
async function spread(url: string, count: number, share: number): Promise<Omit<Line, "what" | "bound">> {
  const clock = createVirtualClock(1_000_000);
  const connect = () => connectRedisStore({ url, secrets: [secret], prefix: `${share}:`, limitClock: clock });
  const stores = await Promise.all([connect(), connect(), connect()]);
  const sum = { calls: 0, refused: 0, operations: 0 };
  let worst = 0;
  for (let number = 0; number < count; number++) {
    const callsPerMinute = limits[number % limits.length]!;
    const result = await runSpread({
      seed: seed + number,
      callsPerMinute,
      share,
      minutes: 10,
      stores,
      clock,
    });
    for (const key of ["calls", "refused", "operations"] as const) sum[key] += result[key];
    worst = Math.max(worst, result.peak / (callsPerMinute + Math.floor(callsPerMinute / 10)));
  }
  await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
  const figure =
    share < 1
      ? `${toText(sum.refused)} refused, ${(sum.operations / sum.calls).toFixed(2)} operations a call`
      : `${toText(sum.refused)} refused; in any stretch at most ${(worst * 100).toFixed(1)} % of the bound`;
  return {
    count: `${count} spreads from seed ${seed}, ${toText(sum.calls)} calls`,
    figure,
    isMet: share < 1 ? sum.refused === 0 : sum.refused > 0 && worst <= 1 + 1e-6,
  };
}

/** Forges and replays all that says who is revoked, while one caller is. */
async function forge(url: string, rounds: number): Promise<Omit<Line, "what" | "bound">> {
  const chance = createChance(seed);
  const clock = createVirtualClock(Date.now());
  let restored = 0;
  let lockedOut = 0;
  let isRevoked = false;
  const fences = new Map<string, number>();
  const onChange = (caller: string, isNow: boolean): void => {
    if (caller === "ada" && !isNow && isRevoked) restored++;
    if (caller === "bob" && isNow) lockedOut++;
    if (isNow) fences.set(caller, (fences.get(caller) ?? 0) + 1);
  };
  const connect = () => connectRedisStore({ url, secrets: [secret] });
  const stores = await Promise.all([connect(), connect(), connect()]);
  const replicas = stores.map((store) => new SharedRevocations({ store, clock, onChange }));
  const [commands, ears] = [createClient({ url, RESP: 2 }), createClient({ url, RESP: 2 })];
  await Promise.all([commands.connect(), ears.connect()]);
  const heard: string[] = [];
  await ears.subscribe("junctor:news", (news) => void heard.push(news));
  /** Has the others hear a later change: what came before it was heard too. */
  const fence = async (name: string): Promise<void> => {
    await replicas[0]!.change(name, true);
    while ((fences.get(name) ?? 0) < replicas.length - 1)
      await new Promise((resolve) => setImmediate(resolve));
  };

  const slots = ["junctor:revoked", ...Array.from({ length: 64 }, (_, slot) => `junctor:revoked:${slot}`)];
  const kept: (readonly [string, string])[] = [];
  for (let change = 0; change < 6; change++) {
    await replicas[change % 3]!.change("ada", change % 2 === 0);
    await fence(`before ${change}`);
    await clock.advance(1);
    for (const slot of slots) {
      const value: unknown = await commands.sendCommand(["GET", slot]);
      if (typeof value === "string") kept.push([slot, value]);
    }
  }
  await replicas[1]!.change("ada", true);
  await fence("revoked");
  isRevoked = true;
  const old = [...heard];
  const at = Date.now() + 86_400_000;
  const news = JSON.stringify({ kind: "revocation", caller: "ada", isRevoked: false, at });
  const against = JSON.stringify({ kind: "revocation", caller: "bob", isRevoked: true, at });
  const entries = JSON.stringify({ ada: [0, at], bob: [1, at] });
  const attacks: readonly (() => readonly string[])[] = [
    () => ["PUBLISH", "junctor:news", news],
    () => ["PUBLISH", "junctor:news", against],
    () => ["PUBLISH", "junctor:news", `${chance.pick(old).slice(0, 44)}${against}`],
    () => ["PUBLISH", "junctor:news", `${chance.pick(old).slice(0, 44)}${news}`],
    () => ["PUBLISH", "junctor:news", chance.pick(old)],
    () => ["SET", chance.pick(slots), entries],
    () => ["SET", ...chance.pick(kept)],
    () => ["SET", chance.pick(slots), chance.pick(kept)[1]],
    () => ["DEL", chance.pick(slots)],
  ];
  for (let round = 0; round < rounds; round++) {
    await commands.sendCommand([...chance.pick(attacks)()]);
    // Each replica looks at the store every 3 s.
    if (round % 10 === 9) {
      await clock.advance(3_000);
      await fence(`round ${round}`);
    }
  }
  for (const client of [commands, ears]) client.destroy();
  for (const replica of replicas) replica[Symbol.dispose]();
  await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
  return {
    count: `${toText(rounds)} commands from seed ${seed}`,
    figure: `${restored} times it was let in, ${lockedOut} times another was kept out`,
    isMet: restored === 0 && lockedOut === 0,
  };
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-facts-"));
  const [spreads, rounds] = scale === "full" ? [2_000, 20_000] : [100, 1_000];
  await using engine = await startEngine(await freePort(), folder);
  try {
    return [
      await attempt(
        {
          what: "a caller at 90 % of its limit, its calls spread over three replicas and over time by chance",
          count: `${spreads} spreads`,
          bound: "0 calls refused",
        },
        () => spread(engine.url, spreads, 0.9),
      ),
      await attempt(
        {
          what: "the same at three times its limit",
          count: `${spreads / 10} spreads`,
          bound: "at most the burst, a tenth of it, and what came back, in any stretch of time",
        },
        () => spread(engine.url, spreads / 10, 3),
      ),
      await attempt(
        {
          what: "a program without the secret publishes, writes and deletes forged and old facts to have a revoked caller let in, and another kept out",
          count: `${rounds} commands`,
          bound: "0 times it is let in, 0 times another is kept out",
        },
        () => forge(engine.url, rounds),
      ),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export const row: Row = {
  title: "Shared facts",
  how: "The shared rate limit and the revocations of three replicas in one process, by the store of the gateway and a real Redis. Time is virtual, that of the limits in Redis too.",
  limitMinutes: 15,
  isInShort: true,
  run,
};
