import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Callers as CallerList } from "../junctor/src/admin/answers.ts";
import { Action, Badge, Heading, Table, WhenLoaded } from "./parts.tsx";
import { type Store, useKnown, useLoaded } from "./store.ts";

/** Who may call: what each may see, what it has open, and the way to shut one out. */
export function Callers({ store }: { readonly store: Store }): JSX.Element {
  const { status } = useKnown(store);
  const [acts, setActs] = useState(0);
  const version = `${acts} ${status?.calls.underway} ${status?.sessions}`;
  const loaded = useLoaded<CallerList>(store.api, "/api/callers", version);
  const onDone = (): void => setActs((count) => count + 1);
  return (
    <>
      <Heading>Callers</Heading>
      <WhenLoaded loaded={loaded}>
        {({ callers, unnamed }) => (
          <>
            {unnamed && (
              <p>
                The config has no keys and no issuers: every client on this machine may call, and has no name.
              </p>
            )}
            {callers.length > 0 && (
              <Table caption="Callers" heads={["Name", "May see", "Underway", "Sessions", "Parked", "Act"]}>
                {callers.map(({ name, tools, calls, sessions, parked, isRevoked }) => (
                  <tr key={name}>
                    <td>
                      {name} {isRevoked && <Badge state="revoked" />}
                    </td>
                    <td>
                      <a href={`#/tools?as=${encodeURIComponent(name)}`}>{tools} tools</a>
                    </td>
                    <td>{calls}</td>
                    <td>{sessions}</td>
                    <td>{parked}</td>
                    <td>
                      {isRevoked ? (
                        <Action
                          label="Restore"
                          act={() => store.api.send("POST", pathOf(name, "restore"))}
                          onDone={onDone}
                        />
                      ) : (
                        <Action
                          label="Revoke"
                          confirm={`Refuse ${name} from now on, and end all it has open?`}
                          act={() => store.api.send("POST", pathOf(name, "revoke"))}
                          onDone={onDone}
                        />
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
            )}
          </>
        )}
      </WhenLoaded>
    </>
  );
}

function pathOf(name: string, act: string): string {
  return `/api/callers/${encodeURIComponent(name)}/${act}`;
}
