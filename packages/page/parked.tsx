import type { JSX } from "preact";
import type { Sessions } from "../junctor/src/admin/answers.ts";
import { Heading, Table, useNow, WhenLoaded } from "./parts.tsx";
import { type Store, useKnown, useLoaded } from "./store.ts";
import { describeAge } from "./words.ts";

/** Calls that wait for answers, and the sessions of legacy callers. */
export function ParkedView({ store }: { readonly store: Store }): JSX.Element {
  const { parked, status } = useKnown(store);
  const now = useNow();
  const sessions = useLoaded<Sessions>(
    store.api,
    "/api/sessions",
    `${status?.sessions} ${Math.floor(now / 5000)}`,
  );
  return (
    <>
      <Heading>Parked calls</Heading>
      <p class="quiet">A call is parked while its caller is away with a question of the tool.</p>
      {parked.parked.length === 0 ? (
        <p>No call is parked.</p>
      ) : (
        <Table
          caption="Parked calls"
          heads={["Call", "Server", "Caller", "Waits for", "Question", "For", "Given up in"]}
        >
          {parked.parked.map(({ call, tool, server, caller, waitsFor, questions, ageMs, leftMs }) => (
            <tr key={call}>
              <td>
                {call === undefined ? (
                  tool
                ) : (
                  <a href={`#/calls/${encodeURIComponent(call)}`}>{tool ?? call}</a>
                )}
              </td>
              <td>{server}</td>
              <td>{caller ?? "unnamed"}</td>
              <td>the {waitsFor}</td>
              <td>{questions.map(({ method }) => method).join(" · ")}</td>
              <td>{describeAge(ageMs)}</td>
              <td>{leftMs === undefined ? "–" : describeAge(leftMs)}</td>
            </tr>
          ))}
        </Table>
      )}
      {parked.more > 0 && <p class="quiet">and {parked.more} more</p>}
      <h2>Sessions</h2>
      <WhenLoaded loaded={sessions}>
        {({ sessions: list, more }) =>
          list.length === 0 ? (
            <p>No legacy client has a session.</p>
          ) : (
            <>
              <Table
                caption="Sessions"
                heads={["Client", "Caller", "Revision", "Transport", "Age", "Idle", "Calls", "Streams"]}
              >
                {list.map((session) => (
                  <tr key={session.id}>
                    <td>{session.client ?? "unknown"}</td>
                    <td>{session.caller ?? "unnamed"}</td>
                    <td>{session.revision}</td>
                    <td>{session.transport}</td>
                    <td>{describeAge(session.ageMs)}</td>
                    <td>{describeAge(session.idleMs)}</td>
                    <td>{session.calls}</td>
                    <td>{session.streams}</td>
                  </tr>
                ))}
              </Table>
              {more > 0 && <p class="quiet">and {more} more</p>}
            </>
          )
        }
      </WhenLoaded>
    </>
  );
}
