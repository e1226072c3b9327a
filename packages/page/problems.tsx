import type { JSX } from "preact";
import { Action, Badge, Heading } from "./parts.tsx";
import { type Store, useKnown } from "./store.ts";

/** What is wrong with the config or with servers, and edits that wait for a person. */
export function ProblemsView({ store }: { readonly store: Store }): JSX.Element {
  const { problems, waiting } = useKnown(store).problems;
  return (
    <>
      <Heading>Problems</Heading>
      {waiting !== undefined && (
        <section class="card">
          <h2>An edit of the config waits</h2>
          <p>
            It starts, reaches, loads or loosens something. Read it before you agree: a tool could have
            written it.
          </p>
          <pre class="text">{waiting.edits.join("\n")}</pre>
          <div class="actions">
            <Action
              label="Agree to this edit"
              confirm="Take this edit of the config?"
              act={() => store.api.send("POST", "/api/reload", { version: waiting.version })}
            />
          </div>
        </section>
      )}
      {problems.length === 0 ? (
        <p>No problem is known.</p>
      ) : (
        <ul class="problems">
          {problems.map(({ severity, where, message, server }) => (
            <li key={`${where} ${message}`}>
              <Badge state={severity} /> {where !== undefined && <code>{where}</code>} {message}{" "}
              {server !== undefined && <span class="quiet">({server})</span>}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
