import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ServerReport, Usage, UsageReport } from "../junctor/src/admin/answers.ts";
import { Icon } from "./icons.tsx";
import {
  Action,
  Dot,
  Empty,
  Heading,
  KeyBar,
  Search,
  Segments,
  Spark,
  useKeys,
  useNow,
  useTicks,
  useWindow,
} from "./parts.tsx";
import { go, hrefOf, pathOf, refine, type Route } from "./route.ts";
import { badgeOf, isTrouble, sortServers, type Store, toolCount, useKnown, useLoaded } from "./store.ts";
import {
  describeAge,
  describeCount,
  describeMs,
  describeNumber,
  describeRate,
  describeShort,
  describeSince,
} from "./words.ts";

const rowHeight = 36;

type Item = { readonly head: string } | { readonly server: ServerReport };

/** Every server in one table, those in trouble first. */
export function Servers({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const known = useKnown(store);
  const ticks = useTicks(15_000);
  const usage = useLoaded<Usage>(store.api, "/api/usage?by=server&sinceMs=3600000", ticks);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState(-1);
  const used = new Map(usage.kind === "loaded" ? usage.value.rows.map((row) => [row.name, row]) : []);
  const words = route.query.get("q") ?? "";
  const is = route.query.get("is") ?? "all";
  const sorted = sortServers(known.servers, (name) => used.get(name)?.calls ?? 0);
  const shown = sorted.filter((server) => fits(server, is) && matches(server, words));
  const items = toItems(shown);
  const place = useWindow(items.length, rowHeight);
  const current = shown[Math.min(at, shown.length - 1)];
  const move = (step: number): void => setAt(Math.max(0, Math.min(shown.length - 1, at + step)));
  const toggle = (name: string): void =>
    setChosen((before) => {
      const next = new Set(before);
      if (!next.delete(name)) next.add(name);
      return next;
    });
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => current !== undefined && toggle(current.name),
    Enter: () => current !== undefined && go(pathOf(current.name)),
    Escape: () => setChosen(new Set()),
  });
  return (
    <div class="view list-view">
      <header class="view-head">
        <Heading>Servers</Heading>
        <a class="button" href={hrefOf("settings/add")}>
          <Icon name="plus" /> Add a server
        </a>
      </header>
      <div class="filters">
        <Search label="Name, reason or tool" value={words} onChange={(q) => refine(route, { q })} />
        <Segments
          label="State"
          value={is}
          options={toOptions(known.servers)}
          onChange={(next) => refine(route, { is: next === "all" ? undefined : next })}
        />
        <span class="side quiet wide-only">Sorted by trouble, then by calls</span>
      </div>
      <div class="scroller">
        <div ref={place.ref}>
          {shown.length === 0 && known.status !== undefined && (
            <NoServers isEmpty={known.servers.length === 0} onClear={() => go("servers")} />
          )}
          {shown.length > 0 && (
            <table class="servers-table" aria-rowcount={items.length}>
              <ServerHeads />
              <tbody>
                {place.above > 0 && (
                  <tr class="spacer" style={{ height: `${place.above}px` }} aria-hidden="true" />
                )}
                {items.slice(place.first, place.last).map((item) =>
                  "head" in item ? (
                    <tr key={item.head} class="group-head">
                      <th colSpan={11} scope="colgroup">
                        {item.head}
                      </th>
                    </tr>
                  ) : (
                    <ServerRow
                      key={item.server.name}
                      server={item.server}
                      used={used.get(item.server.name)}
                      isChosen={chosen.has(item.server.name)}
                      isCurrent={item.server === current}
                      onToggle={() => toggle(item.server.name)}
                    />
                  ),
                )}
                {place.below > 0 && (
                  <tr class="spacer" style={{ height: `${place.below}px` }} aria-hidden="true" />
                )}
              </tbody>
            </table>
          )}
        </div>
      </div>
      {chosen.size > 0 && <BulkBar store={store} names={[...chosen]} onClear={() => setChosen(new Set())} />}
      <KeyBar
        keys={[
          ["J K", "move"],
          ["X", "select"],
          ["Enter", "open"],
        ]}
      >
        {describeCount(known.servers.length, "server")} · {describeCount(toolCount(known), "tool")} ·{" "}
        {describeShort(known.servers.reduce((sum, { tokens = 0 }) => sum + tokens, 0))} tokens of definitions
      </KeyBar>
    </div>
  );
}

function NoServers({
  isEmpty,
  onClear,
}: {
  readonly isEmpty: boolean;
  readonly onClear: () => void;
}): JSX.Element {
  return isEmpty ? (
    <Empty title="The config has no servers.">
      <p>
        <code>junctor import</code> brings those of your clients; <code>junctor add</code> adds one.
      </p>
    </Empty>
  ) : (
    <Empty title="No server matches.">
      <button type="button" onClick={onClear}>
        Clear the filter
      </button>
    </Empty>
  );
}

function ServerHeads(): JSX.Element {
  return (
    <thead>
      <tr>
        <th scope="col" class="check-cell">
          <span class="hidden">Select</span>
        </th>
        <th scope="col" class="name-cell">
          Server
        </th>
        <th scope="col">State</th>
        <th scope="col" class="day-cell rank3">
          Last 24 h
        </th>
        <th scope="col" class="spark-cell rank2">
          Calls, 10 min (most)
        </th>
        <th scope="col" class="number">
          Median
        </th>
        <th scope="col" class="number rank2">
          p99
        </th>
        <th scope="col" class="number rank2">
          Failed
        </th>
        <th scope="col" class="number rank2">
          Tools
        </th>
        <th scope="col" class="number rank3">
          Tokens
        </th>
        <th scope="col" class="number since-cell">
          Since
        </th>
      </tr>
    </thead>
  );
}

interface RowProps {
  readonly server: ServerReport;
  readonly used: UsageReport | undefined;
  readonly isChosen: boolean;
  readonly isCurrent: boolean;
  readonly onToggle: () => void;
}

function ServerRow({ server, used, isChosen, isCurrent, onToggle }: RowProps): JSX.Element {
  const { name, recent, tools, tokens, sinceAt, cause, day = "" } = server;
  const { tone } = badgeOf(server);
  const failed = used?.failed ?? 0;
  const since = cause?.sinceAt ?? sinceAt;
  return (
    <tr class={`${isChosen ? "chosen" : ""} ${isCurrent ? "current" : ""}`}>
      <td class="check-cell">
        <input type="checkbox" aria-label={`Select ${name}`} checked={isChosen} onChange={onToggle} />
      </td>
      <th scope="row" class="name-cell">
        <a href={hrefOf(pathOf(name))} title={name}>
          <Dot tone={tone} />
          <span>{name}</span>
        </a>
      </th>
      <td class="state-cell">
        <StateText server={server} />
      </td>
      <td class="day-cell rank3">
        <DayBar day={day} />
      </td>
      <td class="spark-cell rank2">
        {recent === undefined ? (
          <span class="quiet">no calls</span>
        ) : (
          <Spark values={recent.rate} describe={(most) => `${describeRate(most)}/s`} />
        )}
      </td>
      <td class="number">{describeMs(used?.p50Ms)}</td>
      <td class={`number rank2 ${cause?.kind === "slow" ? "warn" : ""}`}>{describeMs(used?.p99Ms)}</td>
      <td class={`number rank2 ${failed === 0 ? "quiet" : cause === undefined ? "" : "danger"}`}>
        {describeNumber(failed)}
      </td>
      <td class="number rank2">{tools}</td>
      <td class="number rank3">{tokens === undefined ? "–" : describeShort(tokens)}</td>
      <td class="number since-cell quiet">
        {since === undefined || since === 0 ? "–" : describeSince(since, Date.now())}
      </td>
    </tr>
  );
}

/** The state in a word, or what is wrong in one line. */
function StateText({ server }: { readonly server: ServerReport }): JSX.Element {
  const now = useNow(server.nextTryAt === undefined ? 60_000 : 1000);
  const { cause, nextTryAt } = server;
  const { word } = badgeOf(server);
  const leftOut = server.leftOut?.length ?? 0;
  if (cause === undefined)
    return (
      <span class="quiet">
        {word}
        {leftOut > 0 && ` · ${describeCount(leftOut, "definition")} left out`}
      </span>
    );
  return (
    <span title={cause.text}>
      <span class="hidden">{word}: </span>
      <b class={cause.kind === "down" ? "danger" : "warn"}>{cause.text}</b>
      {nextTryAt !== undefined && nextTryAt > now && (
        <span class="quiet"> · next try in {describeAge(nextTryAt - now)}</span>
      )}
    </span>
  );
}

const dayWords: { readonly [mark: string]: string } = { d: "down", s: "starting", u: "up", i: "idle" };

/** The last 24 hours as a bar: one piece for each run of equal marks. */
export function DayBar({ day }: { readonly day: string }): JSX.Element {
  const pieces = [...day.matchAll(/(.)\1*/g)].map(([piece, mark = "-"]) => ({ mark, length: piece.length }));
  let from = 0;
  const summary = Object.entries(dayWords)
    .map(([mark, word]) => [word, day.split(mark).length / 4 - 0.25] as const)
    .filter(([, hours]) => hours > 0)
    .map(([word, hours]) => `${word} ${hours} h`)
    .join(", ");
  return (
    <svg
      class="day"
      viewBox="0 0 96 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={summary === "" ? "Not known" : `Last 24 hours: ${summary}`}
    >
      {pieces.map(({ mark, length }) => {
        const x = from;
        from += length;
        return <rect key={x} class={`mark-${mark}`} x={x} y={0} width={length} height={6} />;
      })}
    </svg>
  );
}

function BulkBar(props: {
  readonly store: Store;
  readonly names: readonly string[];
  readonly onClear: () => void;
}): JSX.Element {
  const { store, names, onClear } = props;
  const all = (act: string): Promise<unknown> =>
    Promise.all(
      names.map((name) => store.api.send("POST", `/api/servers/${encodeURIComponent(name)}/${act}`)),
    );
  const shown = names.slice(0, 3).join(", ");
  return (
    <div class="bulk" role="region" aria-label="Selected servers">
      <b>{names.length} selected</b>
      <span class="quiet names">
        {shown}
        {names.length > 3 ? ", …" : ""}
      </span>
      <Action label="Restart" icon="restart" act={() => all("restart")} onDone={onClear} />
      <Action
        label="Stop…"
        icon="stop"
        confirm={`Stop ${names.length === 1 ? names[0] : `${names.length} servers`}? Calls get 10 s to finish, and it stays stopped until you start it.`}
        act={() => all("stop")}
        onDone={onClear}
      />
      <button type="button" class="ghost" onClick={onClear}>
        Clear <kbd aria-hidden="true">Esc</kbd>
      </button>
    </div>
  );
}

function toItems(servers: readonly ServerReport[]): readonly Item[] {
  const inTrouble = servers.filter(isTrouble);
  const fine = servers.filter((server) => !isTrouble(server));
  return [
    ...(inTrouble.length === 0
      ? []
      : [{ head: `Needs attention · ${inTrouble.length}` }, ...inTrouble.map((server) => ({ server }))]),
    ...(fine.length === 0 ? [] : [{ head: `Fine · ${fine.length}` }, ...fine.map((server) => ({ server }))]),
  ];
}

const restingStates = ["idle", "stopped", "disabled"];

function fits(server: ServerReport, is: string): boolean {
  if (is === "trouble") return isTrouble(server);
  if (is === "up") return server.status === "up" && !isTrouble(server);
  return is === "idle" ? restingStates.includes(server.status) : true;
}

function toOptions(
  servers: readonly ServerReport[],
): readonly { value: string; label: string; count: number }[] {
  return [
    ["all", "All"],
    ["trouble", "Trouble"],
    ["up", "Up"],
    ["idle", "Idle"],
  ].map(([value = "", label = ""]) => ({
    value,
    label,
    count: servers.filter((server) => fits(server, value)).length,
  }));
}

function matches({ name, cause, says, address }: ServerReport, words: string): boolean {
  const all = `${name} ${cause?.text ?? ""} ${says ?? ""} ${address ?? ""}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
