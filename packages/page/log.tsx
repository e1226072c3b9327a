import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AdminLogLine } from "../junctor/src/admin/answers.ts";
import { Icon } from "./icons.tsx";
import { CopyButton, Empty, Heading, KeyBar, messageOf, Search, Segments, useKeys } from "./parts.tsx";
import { hrefOf, refine, type Route } from "./route.ts";
import { type Store, useKnown } from "./store.ts";
import { describeCount, describeMoment, describeTime, toText } from "./words.ts";

const levels = ["trace", "debug", "info", "warn", "error"];

/** What the gateway and its servers wrote, newest first. */
export function Log({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const { log } = useKnown(store);
  const { query } = route;
  const words = (query.get("q") ?? "").toLowerCase();
  const level = query.get("level") ?? "all";
  const server = query.get("server");
  const [held, setHeld] = useState<readonly AdminLogLine[]>();
  const [openSeq, setOpen] = useState<number>();
  const lines = held ?? log;
  const count = (least: string): number => lines.filter((line) => isAtLeast(line, least)).length;
  const shown = lines
    .filter((line) => isAtLeast(line, level) && (server === null || line.facts["server"] === server))
    .filter(
      (line) => words === "" || `${line.text} ${JSON.stringify(line.facts)}`.toLowerCase().includes(words),
    )
    .toReversed();
  const at = shown.findIndex(({ seq }) => seq === openSeq);
  const step = (by: number): void => setOpen(shown[Math.max(0, Math.min(shown.length - 1, at + by))]?.seq);
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    e: () => refine(route, { level: level === "error" ? undefined : "error" }),
    Escape: () => setOpen(undefined),
  });
  return (
    <div class="view list-view">
      <header class="view-head">
        <Heading>Log</Heading>
        <LevelChoice store={store} />
        <button
          type="button"
          class={held === undefined ? "following" : ""}
          aria-pressed={held === undefined}
          onClick={() => setHeld(held === undefined ? log : undefined)}
        >
          <Icon name="play" />
          {held === undefined ? "Following" : "Follow"}
        </button>
      </header>
      <div class="filters">
        <Search
          label="Search text, server, call"
          value={query.get("q") ?? ""}
          onChange={(q) => refine(route, { q })}
        />
        <Segments
          label="Level"
          value={level}
          options={[
            { value: "all", label: "All", count: lines.length },
            { value: "warn", label: "Warnings", count: count("warn") },
            { value: "error", label: "Errors", count: count("error") },
          ]}
          onChange={(next) => refine(route, { level: next === "all" ? undefined : next })}
        />
        {server !== null && (
          <button
            type="button"
            class="chip"
            aria-label={`Remove the filter server ${server}`}
            onClick={() => refine(route, { server: undefined })}
          >
            server <b>{server}</b> <Icon name="close" size={12} />
          </button>
        )}
      </div>
      <div class="scroller">
        {shown.length === 0 ? (
          <Empty title={log.length === 0 ? "No line yet." : "No line matches."}>
            {log.length > 0 && <a href="#/log">Clear the filter</a>}
          </Empty>
        ) : (
          <ul class="log-lines">
            {shown.map((line) => (
              <Line
                key={line.seq}
                line={line}
                isOpen={line.seq === openSeq}
                onOpen={() => setOpen(line.seq === openSeq ? undefined : line.seq)}
              />
            ))}
          </ul>
        )}
      </div>
      <KeyBar
        keys={[
          ["J K", "move"],
          ["Enter", "facts"],
          ["E", "only errors"],
        ]}
      >
        {lines[0] === undefined
          ? ""
          : `the last ${describeCount(lines.length, "line")}, from ${describeTime(lines[0].at).slice(0, 5)}`}
      </KeyBar>
    </div>
  );
}

function isAtLeast({ level }: AdminLogLine, least: string): boolean {
  return least === "all" || levels.indexOf(level) >= levels.indexOf(least);
}

/** The level of the gateway: it decides what is written, and filters nothing here. */
function LevelChoice({ store }: { readonly store: Store }): JSX.Element {
  const { status } = useKnown(store);
  const [trouble, setTrouble] = useState<string>();
  const setLevel = (level: string): void => {
    store.api.send("PUT", "/api/log-level", { level }).then(
      () => setTrouble(undefined),
      (error: unknown) => setTrouble(messageOf(error)),
    );
  };
  return (
    <label class="level side quiet">
      <span>Gateway log level</span>
      <select value={status?.logLevel} onChange={({ currentTarget }) => setLevel(currentTarget.value)}>
        {levels.map((level) => (
          <option key={level} value={level}>
            {level}
          </option>
        ))}
      </select>
      {trouble !== undefined && (
        <span class="trouble" role="alert">
          {trouble}
        </span>
      )}
    </label>
  );
}

/** Facts that a closed line shows beside its text. */
const shortFacts = ["call", "code", "reason", "path", "attempt"];

function Line(props: {
  readonly line: AdminLogLine;
  readonly isOpen: boolean;
  readonly onOpen: () => void;
}): JSX.Element {
  const { line, isOpen, onOpen } = props;
  const { at, level, text, facts } = line;
  const server = typeof facts["server"] === "string" ? facts["server"] : undefined;
  const chips = shortFacts.flatMap((name) => {
    const value = facts[name];
    return typeof value === "string" || typeof value === "number"
      ? [[name, String(value).slice(0, 80)] as const]
      : [];
  });
  // What a server wrote is quoted as it is.
  const isQuoted = server !== undefined && Object.keys(facts).length === 1;
  return (
    <li class={`${level} ${isOpen ? "open" : ""}`}>
      <button type="button" aria-expanded={isOpen} onClick={onOpen}>
        <time>{describeMoment(at)}</time>
        <span class={`level ${level}`}>{level}</span>
        <span class="who">{server ?? "gateway"}</span>
        <span class={isQuoted ? "text quoted" : "text"}>
          {text}
          {!isOpen &&
            chips.map(([name, value]) => (
              <span key={name} class="fact">
                {name} {value}
              </span>
            ))}
        </span>
      </button>
      {isOpen && (
        <div class="opened">
          <dl class="facts">
            {Object.entries(facts).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <code>{toText(value)}</code>
                </dd>
              </div>
            ))}
          </dl>
          <p class="acts">
            {typeof facts["call"] === "string" && (
              <a class="button small" href={hrefOf("calls", { call: facts["call"] })}>
                Show the call
              </a>
            )}
            {server !== undefined && (
              <a class="button small" href={hrefOf("log", { server })}>
                Only {server}
              </a>
            )}
            <CopyButton text={JSON.stringify(line)} label="Copy the line" />
          </p>
        </div>
      )}
    </li>
  );
}
