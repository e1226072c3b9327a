import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { CallReport } from "../junctor/src/admin/answers.ts";
import { Badge, Heading, Table, WhenLoaded } from "./parts.tsx";
import type { Route } from "./route.ts";
import { type Store, useKnown, useLoaded } from "./store.ts";
import { describeBytes, describeMs, describeTime, toPrettyJson } from "./words.ts";

/** The calls as they come: each with its life, newest first. */
export function Calls({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const { calls } = useKnown(store);
  const [words, setWords] = useState("");
  const [held, setHeld] = useState<readonly CallReport[]>();
  const shown = (held ?? calls).filter((call) => matches(call, words));
  if (route.rest !== "") return <CallView store={store} id={route.rest} />;
  return (
    <>
      <Heading>Calls</Heading>
      <div class="bar">
        <div class="field inline">
          <label for="filter">Filter</label>
          <input
            id="filter"
            type="search"
            placeholder="tool, server, caller, state"
            value={words}
            onInput={({ currentTarget }) => setWords(currentTarget.value)}
          />
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={held === undefined}
            onChange={({ currentTarget }) => setHeld(currentTarget.checked ? undefined : calls)}
          />
          Follow
        </label>
      </div>
      {shown.length === 0 ? (
        <p class="quiet">{calls.length === 0 ? "No call yet. Try a tool." : "No call fits the filter."}</p>
      ) : (
        <Table
          caption="Calls, newest first"
          heads={["Time", "State", "What", "Server", "Caller", "Took", "Life"]}
        >
          {shown.map((call) => (
            <Row key={call.id} call={call} />
          ))}
        </Table>
      )}
    </>
  );
}

function Row({ call }: { readonly call: CallReport }): JSX.Element {
  const { id, at, ms, tool, name, method, server, caller, client } = call;
  return (
    <tr>
      <td>{describeTime(at)}</td>
      <td>
        <Badge state={stateOf(call)} />
      </td>
      <td>
        <a href={`#/calls/${encodeURIComponent(id)}`}>{tool ?? method}</a>
        {name !== undefined && <span class="quiet"> {name}</span>}
      </td>
      <td>{server ?? ""}</td>
      <td>{caller ?? client ?? ""}</td>
      <td>{describeMs(ms)}</td>
      <td class="life">{describeLife(call)}</td>
    </tr>
  );
}

function stateOf({ state, outcome }: CallReport): string {
  return state === "ended" ? (outcome ?? "ended") : state;
}

/** How long it was in each state, such as "queued 1 ms › sent 40 ms". */
function describeLife({ steps, ms, state }: CallReport): string {
  return steps
    .filter((step) => step.state !== "ended")
    .map((step, i) => {
      const until = steps[i + 1]?.atMs ?? (state === "ended" ? ms : undefined);
      return until === undefined ? step.state : `${step.state} ${describeMs(until - step.atMs)}`;
    })
    .join(" › ");
}

function matches(call: CallReport, words: string): boolean {
  const { tool, name, method, server, caller, client, outcome, state, code } = call;
  const all = [tool, name, method, server, caller, client, outcome, state, code].join(" ").toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}

function CallView({ store, id }: { readonly store: Store; readonly id: string }): JSX.Element {
  const { calls } = useKnown(store);
  const state = calls.find((call) => call.id === id)?.state;
  const loaded = useLoaded<CallReport>(store.api, `/api/calls/${encodeURIComponent(id)}`, state);
  return (
    <>
      <Heading>Call {id}</Heading>
      <p>
        <a href="#/calls">All calls</a>
      </p>
      <WhenLoaded loaded={loaded}>{(call) => <Detail call={call} />}</WhenLoaded>
    </>
  );
}

function Detail({ call }: { readonly call: CallReport }): JSX.Element {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Method", call.method],
    ["Tool", call.tool],
    [call.method === "resources/read" ? "URI" : "Name", call.name],
    ["Server", call.server],
    ["Caller", call.caller],
    ["Client", call.client],
    ["Era of the caller", call.era],
    ["Era of the server", call.upstreamEra],
    ["Came at", describeTime(call.at)],
    ["Took", describeMs(call.ms)],
    ["Code", call.code],
    ["Delivery", call.delivery],
    ["Bytes in", describeBytes(call.bytesIn)],
    ["Bytes out", describeBytes(call.bytesOut)],
    ["Trace", call.traceId],
  ];
  return (
    <>
      <p>
        <Badge state={stateOf(call)} />
      </p>
      <dl class="facts">
        {facts.map(([name, value]) =>
          value === undefined ? null : (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
      <h2>Life</h2>
      <ol class="steps">
        {call.steps.map(({ state, atMs }, i) => (
          <li key={i}>
            <Badge state={state} /> after {describeMs(atMs)}
          </li>
        ))}
      </ol>
      {call.arguments === undefined && call.result === undefined ? (
        <p class="quiet">
          Arguments and results are shown for calls made from this page, and for servers with{" "}
          <code>"record": true</code>.
        </p>
      ) : (
        <>
          <h2>Arguments</h2>
          <pre class="text">{toPrettyJson(call.arguments)}</pre>
          <h2>Result{call.cut === true && ", cut"}</h2>
          <pre class="text">{toPrettyJson(call.result)}</pre>
        </>
      )}
    </>
  );
}
