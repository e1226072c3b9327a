import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { CallReport, History } from "../junctor/src/admin/answers.ts";
import { Icon } from "./icons.tsx";
import {
  Badge,
  CauseBox,
  CopyButton,
  Dot,
  Empty,
  Facts,
  Heading,
  KeyBar,
  ranges,
  Search,
  Segments,
  type Tone,
  ToolName,
  toneOf,
  toRangeMs,
  useKeys,
  useTicks,
  WhenLoaded,
} from "./parts.tsx";
import { go, hrefOf, refine, type Route } from "./route.ts";
import { type Loaded, type Store, useKnown, useLoaded } from "./store.ts";
import {
  describeBytes,
  describeCount,
  describeMoment,
  describeMs,
  describeNumber,
  describeRate,
  describeTime,
  toPrettyJson,
} from "./words.ts";

interface ViewProps {
  readonly store: Store;
  readonly route: Route;
}

const pageSize = 100;

/** The calls, why they failed, and whether they can be made again. */
export function Calls({ store, route }: ViewProps): JSX.Element {
  const { query } = route;
  const range = query.get("range") ?? "1h";
  const is = query.get("is") ?? "all";
  const [isFollowing, setFollowing] = useState(true);
  const running = useRunning(store, query);
  const { history, more, older } = useHistory(store, query, isFollowing);
  const openId = query.get("call") ?? (route.rest === "" ? undefined : route.rest);
  const open = (id: string | undefined): void => {
    if (route.rest !== "") go("calls", { ...Object.fromEntries(query), call: id });
    else refine(route, { call: id });
  };
  const found = history.kind === "loaded" ? history.value : undefined;
  const shown =
    is === "running" ? running : [...(is === "all" ? running : []), ...(found?.calls ?? []), ...older];
  const at = shown.findIndex(({ id }) => id === openId);
  const step = (by: number): void => open(shown[Math.max(0, Math.min(shown.length - 1, at + by))]?.id);
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    f: () => refine(route, { is: is === "failed" ? undefined : "failed" }),
    Escape: () => open(undefined),
  });
  return (
    <div class={`view list-view calls-view ${openId === undefined ? "" : "has-drawer"}`}>
      <header class="view-head">
        <Heading>Calls</Heading>
        <span class="side quiet wide-only">{describeKept(found)}</span>
        <Segments
          label="Range"
          value={range}
          options={ranges}
          onChange={(next) => refine(route, { range: next })}
        />
        <button
          type="button"
          class={isFollowing ? "following" : ""}
          aria-pressed={isFollowing}
          onClick={() => setFollowing(!isFollowing)}
        >
          <Icon name="play" />
          {isFollowing ? "Following" : "Follow"}
        </button>
      </header>
      <div class="filters">
        <Search
          label="Search tool, reason, caller, trace id"
          value={query.get("q") ?? ""}
          onChange={(q) => refine(route, { q })}
        />
        <Segments
          label="Which"
          value={is}
          options={[
            { value: "all", label: "All", count: found?.all },
            { value: "failed", label: "Failed", count: found?.failed },
            { value: "running", label: "Running", count: running.length },
          ]}
          onChange={(next) => refine(route, { is: next === "all" ? undefined : next })}
        />
        <FilterChip route={route} name="server" />
        <FilterChip route={route} name="caller" />
        <FilterChip route={route} name="tool" />
      </div>
      <Strips history={found} />
      <div class="with-drawer">
        <div class="scroller">
          <CallList calls={shown} openId={openId} onOpen={open} route={route} history={history} />
          {found?.next !== undefined && is !== "running" && (
            <button type="button" class="more" onClick={more}>
              Show older calls
            </button>
          )}
        </div>
        {openId !== undefined && (
          <Drawer store={store} id={openId} onClose={() => open(undefined)} onStep={step} />
        )}
      </div>
      <KeyBar
        keys={[
          ["J K", "move"],
          ["Enter", "open"],
          ["F", "only failed"],
          ["Esc", "close"],
        ]}
      >
        {found === undefined ? "" : `${describeCount(found.all, "call")} in the range`}
      </KeyBar>
    </div>
  );
}

/** A filter of the address, with a button that removes it. */
function FilterChip({ route, name }: { readonly route: Route; readonly name: string }): JSX.Element | null {
  const value = route.query.get(name);
  if (value === null) return null;
  return (
    <button
      type="button"
      class="chip"
      aria-label={`Remove the filter ${name} ${value}`}
      onClick={() => refine(route, { [name]: undefined })}
    >
      {name} <b>{value}</b> <Icon name="close" size={12} />
    </button>
  );
}

function describeKept(history: History | undefined): string {
  if (history?.keptSince === undefined) return "";
  return `${describeNumber(history.kept)} kept, back to ${describeTime(history.keptSince).slice(0, 5)}`;
}

/** Calls that have not ended and fit the filters that apply to them. */
function useRunning(store: Store, query: URLSearchParams): readonly CallReport[] {
  const { calls } = useKnown(store);
  const words = (query.get("q") ?? "").toLowerCase().split(/\s+/);
  const fits = (name: "server" | "tool", value: string | undefined): boolean =>
    (query.get(name) ?? value) === value;
  return calls.filter(
    (call) =>
      call.state !== "ended" &&
      fits("server", call.server) &&
      fits("tool", call.tool) &&
      (query.get("caller") ?? call.caller ?? call.client) === (call.caller ?? call.client) &&
      words.every((word) =>
        [call.tool, call.name, call.server, call.caller, call.client, call.method, call.id]
          .join(" ")
          .toLowerCase()
          .includes(word),
      ),
  );
}

/** The newest page, read again while following, and the older pages that `more` has read. */
function useHistory(
  store: Store,
  query: URLSearchParams,
  isFollowing: boolean,
): { readonly history: Loaded<History>; readonly older: readonly CallReport[]; readonly more: () => void } {
  const ticks = useTicks(2000);
  const [heldTick, setHeldTick] = useState(0);
  const [older, setOlder] = useState<readonly CallReport[]>([]);
  const [next, setNext] = useState<number>();
  useEffect(() => {
    // While older calls are shown, the newest page stays as it is, so that no row moves.
    if (isFollowing && older.length === 0) setHeldTick(ticks);
  }, [ticks, isFollowing, older.length]);
  const wanted = new URLSearchParams({
    limit: String(pageSize),
    sinceMs: String(toRangeMs(query.get("range") ?? "1h")),
  });
  if (query.get("is") === "failed") wanted.set("is", "failed");
  for (const name of ["server", "caller", "tool"]) {
    const value = query.get(name);
    if (value !== null) wanted.set(name, value);
  }
  if ((query.get("q") ?? "") !== "") wanted.set("words", query.get("q") ?? "");
  const path = `/api/history?${wanted.toString()}`;
  const loaded = useLoaded<History>(store.api, path, heldTick);
  const [shown, setShown] = useState<Loaded<History>>(loaded);
  useEffect(() => {
    if (loaded.kind !== "loading") setShown(loaded);
  }, [loaded]);
  useEffect(() => {
    setOlder([]);
    setNext(undefined);
  }, [path]);
  const more = (): void => {
    const before = next ?? (shown.kind === "loaded" ? shown.value.next : undefined);
    if (before === undefined) return;
    void store.api.get<History>(`${path}&before=${before}`).then((page) => {
      setOlder((all) => [...all, ...page.calls]);
      setNext(page.next);
    });
  };
  const last = older.length > 0 && shown.kind === "loaded" && next === undefined ? withoutNext(shown) : shown;
  return { history: last, older, more };
}

function withoutNext(loaded: Loaded<History>): Loaded<History> {
  if (loaded.kind !== "loaded") return loaded;
  const { next: _, ...rest } = loaded.value;
  return { ...loaded, value: rest };
}

/** Calls and failures over time, each on a scale of its own. */
function Strips({ history }: { readonly history: History | undefined }): JSX.Element {
  const { callBars = [], failedBars = [], fromAt = 0, barMs = 1 } = history ?? {};
  const mostCalls = Math.max(0, ...callBars);
  const mostFailed = Math.max(0, ...failedBars);
  const to = fromAt + barMs * callBars.length;
  return (
    <div class="strips">
      <span class="label">Calls</span>
      <Bars
        values={callBars}
        class="calls"
        label={`Calls over time, most ${mostCalls} in ${describeMs(barMs)}`}
      />
      <span class="most">
        most {barMs < 1000 ? mostCalls : `${describeRate((mostCalls * 1000) / barMs)}/s`}
      </span>
      <span class="label">Failed</span>
      <Bars
        values={failedBars}
        class="failed"
        label={`Failed calls over time, most ${mostFailed} in ${describeMs(barMs)}`}
      />
      <span class="most">
        most {barMs < 60_000 ? mostFailed : `${describeRate((mostFailed * 60_000) / barMs)}/min`}
      </span>
      <span />
      <span class="strip-axis">
        {[0, 1, 2, 3, 4].map((step) => (
          <span key={step}>
            {fromAt === 0
              ? ""
              : describeTime(fromAt + ((to - fromAt) * step) / 4).slice(0, to - fromAt < 600_000 ? 8 : 5)}
          </span>
        ))}
      </span>
      <span />
    </div>
  );
}

function Bars(props: {
  readonly values: readonly number[];
  readonly class: string;
  readonly label: string;
}): JSX.Element {
  const most = Math.max(1, ...props.values);
  return (
    <svg
      class={`bars ${props.class}`}
      viewBox={`0 0 ${Math.max(1, props.values.length) * 10} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={props.label}
    >
      {props.values.map((value, index) =>
        value === 0 ? null : (
          <rect
            key={index}
            x={index * 10 + 1}
            width={8}
            y={20 - Math.max(1.5, (value / most) * 20)}
            height={20}
          />
        ),
      )}
    </svg>
  );
}

function CallList(props: {
  readonly calls: readonly CallReport[];
  readonly openId: string | undefined;
  readonly onOpen: (id: string) => void;
  readonly route: Route;
  readonly history: Loaded<History>;
}): JSX.Element {
  const { calls, openId, onOpen, route, history } = props;
  if (calls.length > 0) return <CallTable calls={calls} openId={openId} onOpen={onOpen} />;
  if (history.kind === "failed") return <p class="trouble">{history.message}</p>;
  if (history.kind === "loading") return <WhenLoaded loaded={history}>{() => null}</WhenLoaded>;
  if (history.value.kept === 0)
    return (
      <Empty title="No call yet.">
        <p>
          Calls appear here as they are made. <a href="#/tools">Try a tool</a>
        </p>
      </Empty>
    );
  return (
    <Empty title="No call matches.">
      <p>
        {route.query.get("range") !== "24h" && (
          <button type="button" onClick={() => refine(route, { range: "24h" })}>
            Look in 24 h
          </button>
        )}{" "}
        <a href="#/calls">Clear the filter</a>
      </p>
    </Empty>
  );
}

export function CallTable(props: {
  readonly calls: readonly CallReport[];
  readonly openId?: string | undefined;
  readonly onOpen?: (id: string) => void;
}): JSX.Element {
  const { calls, openId, onOpen } = props;
  return (
    <table class="calls-table">
      <thead>
        <tr>
          <th scope="col" class="dot-cell">
            <span class="hidden">State</span>
          </th>
          <th scope="col" class="time-cell">
            Time
          </th>
          <th scope="col">Tool</th>
          <th scope="col" class="caller-cell rank2">
            Caller
          </th>
          <th scope="col" class="number took-cell">
            Took
          </th>
          <th scope="col" class="result-cell">
            Result
          </th>
        </tr>
      </thead>
      <tbody>
        {calls.map((call) => (
          <CallRow key={call.id} call={call} isOpen={call.id === openId} onOpen={onOpen} />
        ))}
      </tbody>
    </table>
  );
}

function CallRow(props: {
  readonly call: CallReport;
  readonly isOpen: boolean;
  readonly onOpen: ((id: string) => void) | undefined;
}): JSX.Element {
  const { call, isOpen, onOpen } = props;
  const { id, at, ms, tool, name, method, server, caller, client } = call;
  const state = stateOf(call);
  return (
    <tr class={isOpen ? "chosen" : ""} onClick={onOpen && (() => onOpen(id))}>
      <td class="dot-cell">{state === "ok" ? <span class="dot faint" /> : <Dot tone={toneOf(state)} />}</td>
      <td class="time-cell quiet">{describeMoment(at)}</td>
      <td class="tool-cell">
        <a
          href={hrefOf("calls", { call: id })}
          onClick={(event) => onOpen !== undefined && event.preventDefault()}
        >
          {tool === undefined ? (
            <>
              {method} {name !== undefined && <b>{name}</b>}
            </>
          ) : (
            <ToolName name={tool} server={server} />
          )}
        </a>
      </td>
      <td class="caller-cell rank2 quiet">{caller ?? client ?? ""}</td>
      <td class="number took-cell">{describeMs(ms)}</td>
      <td class={`result-cell ${textTone(state)}`} title={call.reason}>
        {resultOf(call)}
      </td>
    </tr>
  );
}

function textTone(state: string): string {
  const tone: Tone = toneOf(state);
  return tone === "down"
    ? "danger"
    : tone === "slow"
      ? "warn"
      : tone === "busy" || tone === "asks"
        ? "info"
        : "quiet";
}

function stateOf({ state, outcome }: CallReport): string {
  return state === "ended" ? (outcome ?? "ended") : state;
}

const stateWords: { readonly [state: string]: string } = {
  queued: "Waits for its turn",
  sent: "At the server",
  asked: "Asks its caller",
  parked: "Waits for its caller",
  answered: "At the server, with answers",
  ok: "ok",
  tool_error: "The tool failed",
  input_required: "Asked its caller",
  task: "Became a task",
  cancelled: "Cancelled by its caller",
  refused: "Refused",
  failed: "Failed",
};

/** How a call ended, in a few words. */
function resultOf(call: CallReport): string {
  const state = stateOf(call);
  return call.reason ?? `${stateWords[state] ?? state}${call.code === undefined ? "" : ` (${call.code})`}`;
}

interface DrawerProps {
  readonly store: Store;
  readonly id: string;
  readonly onClose: () => void;
  readonly onStep: (by: number) => void;
}

function Drawer({ store, id, onClose, onStep }: DrawerProps): JSX.Element {
  const { calls } = useKnown(store);
  const state = calls.find((call) => call.id === id)?.state;
  const loaded = useLoaded<CallReport>(store.api, `/api/calls/${encodeURIComponent(id)}`, state);
  return (
    <aside class="drawer" aria-label={`Call ${id}`}>
      <div class="drawer-acts">
        <button
          type="button"
          class="ghost small icon-only"
          aria-label="The call above"
          onClick={() => onStep(-1)}
        >
          <Icon name="up" />
        </button>
        <button
          type="button"
          class="ghost small icon-only"
          aria-label="The call below"
          onClick={() => onStep(1)}
        >
          <Icon name="down" />
        </button>
        <button type="button" class="ghost small icon-only" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      <WhenLoaded loaded={loaded}>{(call) => <Detail call={call} />}</WhenLoaded>
    </aside>
  );
}

function Detail({ call }: { readonly call: CallReport }): JSX.Element {
  const { id, tool, name, method, server, at, ms } = call;
  const state = stateOf(call);
  return (
    <>
      <header>
        <h2>{tool === undefined ? `${method} ${name ?? ""}` : <ToolName name={tool} server={server} />}</h2>
        <p class="quiet">
          <Badge tone={toneOf(state)}>{state === "ok" ? "Worked" : (stateWords[state] ?? state)}</Badge>{" "}
          {describeMoment(at)} · {describeMs(ms)} · {id}
        </p>
      </header>
      <div class="drawer-body">
        <Failure call={call} state={state} />
        {tool !== undefined && (
          <p class="acts">
            <a
              class="button"
              href={hrefOf(`tools/${encodeURIComponent(`tool:${tool}`)}`, { as: call.caller, from: id })}
            >
              <Icon name="play" /> Open in Try it
            </a>
            <a class="button ghost" href={hrefOf("calls", { tool, range: "24h" })}>
              Calls of this tool
            </a>
          </p>
        )}
        <Life call={call} />
        <Payload call={call} />
        <Facts
          facts={[
            ["Method", method],
            ["Caller", call.caller],
            ["Client", call.client],
            [
              "Server",
              server === undefined ? undefined : (
                <a key="s" href={hrefOf(`servers/${encodeURIComponent(server)}`)}>
                  {server}
                </a>
              ),
            ],
            [
              "Protocol",
              `${call.era}${call.upstreamEra === undefined ? "" : `, server ${call.upstreamEra}`}`,
            ],
            ["Code", call.code === undefined ? undefined : <code key="c">{call.code}</code>],
            ["In, out", `${describeBytes(call.bytesIn)}, ${describeBytes(call.bytesOut)}`],
            ["Trace", call.traceId === undefined ? undefined : <code key="t">{call.traceId}</code>],
          ]}
        />
      </div>
    </>
  );
}

const effects: { readonly [delivery: string]: string } = {
  not_sent: "It did not reach the server, so the call can be made again.",
  outcome_unknown: "It is not known whether the server did it: look there before you call again.",
  answered: "The server answered it.",
};

/** Why it failed, and whether it had an effect. */
function Failure({ call, state }: { readonly call: CallReport; readonly state: string }): JSX.Element | null {
  const { server, code, delivery = "" } = call;
  if (toneOf(state) !== "down") return null;
  const effect =
    effects[delivery] ??
    (state === "tool_error"
      ? "The tool says itself that it failed."
      : state === "refused"
        ? "It was not sent to a server."
        : "");
  return (
    <CauseBox tone="danger" title={resultOf(call)}>
      <p>
        {effect} <a href={hrefOf("calls", { is: "failed", server, q: code, range: "24h" })}>More like this</a>
      </p>
    </CauseBox>
  );
}

const stepWords: { readonly [state: string]: string } = {
  queued: "Came in",
  sent: "Sent to the server",
  asked: "The server asked",
  parked: "Waited for its caller",
  answered: "Answers sent",
  ended: "Answered the caller",
};

/** The steps of a call on one time axis. */
function Life({ call }: { readonly call: CallReport }): JSX.Element {
  const { steps, ms, state } = call;
  const total = Math.max(ms, 0.01);
  const rows = steps.map((step, index) => {
    const until = steps[index + 1]?.atMs ?? (state === "ended" ? step.atMs : ms);
    return { ...step, took: Math.max(0, until - step.atMs) };
  });
  const isFailed = toneOf(stateOf(call)) === "down";
  return (
    <section class="life" aria-label="Life of the call">
      <h3>
        Life of the call <span class="side quiet">{describeMs(ms)}</span>
      </h3>
      <ol>
        {rows.map((row, index) => {
          const isLast = row.state === "ended";
          const tone =
            isLast && isFailed
              ? "failed"
              : row.state === "sent" || row.state === "answered"
                ? "server"
                : row.state === "asked" || row.state === "parked"
                  ? "waits"
                  : "";
          return (
            <li key={index} class={tone}>
              <span class="step">{stepWords[row.state] ?? row.state}</span>
              <span class="track">
                <span
                  class="took-bar"
                  style={{
                    left: `${(row.atMs / total) * 100}%`,
                    width: `${Math.max(0.8, (row.took / total) * 100)}%`,
                  }}
                />
              </span>
              <span class="number">{isLast ? "" : describeMs(row.took)}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Payload({ call }: { readonly call: CallReport }): JSX.Element {
  if (call.arguments === undefined && call.result === undefined)
    return (
      <p class="quiet">
        Arguments and results are kept for calls made from this page, and for servers with{" "}
        <code>"record": true</code>
        {call.isFromPage ? "; those of this one are forgotten." : "."}
      </p>
    );
  return (
    <>
      <PayloadPart title="Arguments" value={call.arguments} />
      <PayloadPart title={`Result${call.cut === true ? ", cut" : ""}`} value={call.result} />
    </>
  );
}

function PayloadPart({
  title,
  value,
}: {
  readonly title: ComponentChildren;
  readonly value: unknown;
}): JSX.Element | null {
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : toPrettyJson(value);
  return (
    <section>
      <h3>
        {title}{" "}
        <span class="side quiet">
          {describeBytes(text.length)} <CopyButton text={text} />
        </span>
      </h3>
      <pre class="code">{text}</pre>
    </section>
  );
}
