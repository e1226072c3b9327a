import type { JSX } from "preact";
import type { ParkedCalls, Problems, ServerReport } from "../junctor/src/admin/answers.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Code } from "./overview.tsx";
import { Action, CauseBox, Empty, Facts, Heading } from "./parts.tsx";
import { hrefOf, type Route } from "./route.ts";
import { type Store, useKnown } from "./store.ts";
import { describeAge, describeCount } from "./words.ts";

/** One thing that waits for a person. Each kind has a function that makes its items. */
interface WaitingItem {
  readonly id: string;
  readonly group: string;
  readonly icon: IconName;
  readonly title: string;
  readonly second: string;
  readonly left: string;
  readonly View: (props: { readonly store: Store }) => JSX.Element;
}

/** What needs a decision, and until when. */
export function Waiting({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const { parked, problems, servers, status } = useKnown(store);
  const items = [...toEditItems(problems), ...toParkedItems(parked), ...toHeldItems(servers)];
  const open = items.find(({ id }) => id === route.rest) ?? (route.rest === "" ? items[0] : undefined);
  return (
    <div class={`view waiting-view ${route.rest === "" ? "" : "has-detail"}`}>
      <header class="view-head">
        <Heading>Waiting for you</Heading>
      </header>
      {items.length === 0 ? (
        <div class="scroller">
          <Empty title={status === undefined ? "Looking…" : "Nothing waits for you."}>
            <p class="quiet">
              Edits of the config that start or allow something, calls whose server asked a question, and
              definitions that are not approved come here.
            </p>
          </Empty>
        </div>
      ) : (
        <div class="list-and-detail">
          <nav class="scroller list" aria-label="What waits">
            {items.map((item, index) => (
              <div key={item.id}>
                {item.group !== items[index - 1]?.group && (
                  <p class="group-head">
                    {item.group} · {items.filter(({ group }) => group === item.group).length}
                  </p>
                )}
                <a
                  class="item"
                  href={hrefOf(`waiting/${encodeURIComponent(item.id)}`)}
                  aria-current={item === open ? "true" : undefined}
                >
                  <span class="tile">
                    <Icon name={item.icon} />
                  </span>
                  <span class="two">
                    <b>{item.title}</b>
                    <span>{item.second}</span>
                  </span>
                  <span class="side quiet">{item.left}</span>
                </a>
              </div>
            ))}
          </nav>
          <section class="scroller detail" aria-label={open?.title ?? "Chosen"}>
            <a class="back phone-only" href="#/waiting">
              <Icon name="left" /> All that waits
            </a>
            {open === undefined ? (
              <Empty title="It does not wait any more." />
            ) : (
              <open.View key={open.id} store={store} />
            )}
          </section>
        </div>
      )}
    </div>
  );
}

function toEditItems({ waiting }: Problems): readonly WaitingItem[] {
  if (waiting === undefined) return [];
  const { edits, version } = waiting;
  return [
    {
      id: "edit",
      group: "Edits",
      icon: "edit",
      title: "An edit of the config",
      second: describeCount(edits.length, "change"),
      left: "",
      View: ({ store }) => <EditView store={store} edits={edits} version={version} />,
    },
  ];
}

/** The part of an edit that starts, reaches, loads or loosens something, with a button that takes it. */
export function EditView(props: {
  readonly store: Store;
  readonly edits: readonly string[];
  readonly version: string;
}): JSX.Element {
  const { store, edits, version } = props;
  const changes = edits.map((edit) => ({ edit, isCommand: /command|runs|start/i.test(edit) }));
  return (
    <div class="edit">
      <h2>An edit of the config waits for you</h2>
      <p class="quiet">
        The gateway still runs the config from before. It starts, reaches, loads or loosens something: read it
        before you take it, because a tool could have written it.
      </p>
      <CauseBox
        tone={changes.some(({ isCommand }) => isCommand) ? "warn" : "info"}
        title={describeCount(edits.length, "change")}
      >
        <ul class="edits">
          {changes.map(({ edit }) => (
            <li key={edit}>
              <pre>{edit}</pre>
            </li>
          ))}
        </ul>
      </CauseBox>
      <p class="acts">
        <Action
          label={`Take ${describeCount(edits.length, "change")}`}
          busy="Taking…"
          class="ink"
          confirm="Take this edit of the config?"
          act={() => store.api.send("POST", "/api/reload", { version })}
        />
        <span class="quiet">To refuse it, undo the edit in the file. Calls that run are not cut off.</span>
      </p>
    </div>
  );
}

function toParkedItems({ parked }: ParkedCalls): readonly WaitingItem[] {
  return parked.slice(0, 200).map((call) => {
    const { server, tool, caller, ageMs, leftMs, questions, waitsFor } = call;
    const left = leftMs === undefined ? "" : `${describeAge(leftMs)} left`;
    return {
      id: call.call ?? `${server} ${tool} ${ageMs}`,
      group: "Calls whose server asked",
      icon: "hand" as const,
      title: `${server} ${tool ?? ""}`,
      second: `${caller ?? "a caller without a name"}, waits for the ${waitsFor}`,
      left,
      View: () => (
        <>
          <p class="quiet">{server} asked its caller while this call ran</p>
          <h2>{tool ?? "A call"}</h2>
          <Facts
            facts={[
              ["Caller", caller ?? "without a name"],
              ["Waits for", `the ${waitsFor}`],
              ["Questions", questions.map(({ method }) => method).join(" · ")],
              ["Waits since", describeAge(ageMs)],
              [
                "Then",
                leftMs === undefined
                  ? "it goes on when its caller answers"
                  : `in ${describeAge(leftMs)} it is given up`,
              ],
            ]}
          />
          <p>The answer is its caller's to give: the question comes again when the client calls again.</p>
          {call.call !== undefined && (
            <a class="button" href={hrefOf("calls", { call: call.call })}>
              Show the call
            </a>
          )}
        </>
      ),
    };
  });
}

function toHeldItems(servers: readonly ServerReport[]): readonly WaitingItem[] {
  return servers
    .filter(({ unapproved = [] }) => unapproved.length > 0)
    .map(({ name, unapproved = [] }) => ({
      id: `held ${name}`,
      group: "Definitions to approve",
      icon: "key" as const,
      title: name,
      second: `${describeCount(unapproved.length, "definition")} not approved`,
      left: "",
      View: () => (
        <>
          <h2>Definitions of {name} are not approved</h2>
          <p class="quiet">They differ from the lock. What is held back cannot be seen or used by callers.</p>
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Definition</th>
                <th scope="col">Part</th>
                <th scope="col">It is</th>
                <th scope="col">Held back</th>
              </tr>
            </thead>
            <tbody>
              {unapproved.slice(0, 200).map(({ part, name: own, why, isHeldBack }) => (
                <tr key={`${part} ${own}`}>
                  <td>
                    <code>{own === "" ? part : own}</code>
                  </td>
                  <td>{part}</td>
                  <td>{why}</td>
                  <td>{isHeldBack ? "yes" : "no"}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <p>Read the differences and approve them in a terminal:</p>
          <Code text={`junctor trust ${name}`} />
        </>
      ),
    }));
}
