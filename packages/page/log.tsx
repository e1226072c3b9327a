import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Badge, Heading, messageOf, Table } from "./parts.tsx";
import { type Store, useKnown } from "./store.ts";
import { describeTime } from "./words.ts";

const levels = ["trace", "debug", "info", "warn", "error"];

/** The last lines of the log, newest first. */
export function Log({ store }: { readonly store: Store }): JSX.Element {
  const { log, status } = useKnown(store);
  const [words, setWords] = useState("");
  const [trouble, setTrouble] = useState<string>();
  const shown = log
    .filter((line) => JSON.stringify(line).toLowerCase().includes(words.toLowerCase()))
    .toReversed();
  const setLevel = (level: string): void => {
    store.api.send("PUT", "/api/log-level", { level }).then(
      () => setTrouble(undefined),
      (error: unknown) => setTrouble(messageOf(error)),
    );
  };
  return (
    <>
      <Heading>Log</Heading>
      <div class="bar">
        <div class="field inline">
          <label for="log-filter">Filter</label>
          <input
            id="log-filter"
            type="search"
            value={words}
            onInput={({ currentTarget }) => setWords(currentTarget.value)}
          />
        </div>
        <div class="field inline">
          <label for="level">Level until the next start</label>
          <select
            id="level"
            value={status?.logLevel}
            onChange={({ currentTarget }) => setLevel(currentTarget.value)}
          >
            {levels.map((level) => (
              <option key={level} value={level}>
                {level}
              </option>
            ))}
          </select>
        </div>
      </div>
      {trouble !== undefined && (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      {shown.length === 0 ? (
        <p class="quiet">No line.</p>
      ) : (
        <Table caption="Log, newest first" heads={["Time", "Level", "Text"]}>
          {shown.map(({ seq, at, level, text, facts }) => (
            <tr key={seq}>
              <td>{describeTime(at)}</td>
              <td>
                <Badge state={level} />
              </td>
              <td class="said">
                {text}
                {facts !== undefined && <span class="quiet"> {JSON.stringify(facts)}</span>}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
