import { type JSX, render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { createApi, keepKey, takeKey } from "./api.ts";
import { Callers } from "./callers.tsx";
import { Calls } from "./calls.tsx";
import { Mark } from "./icons.tsx";
import { Log } from "./log.tsx";
import { Overview } from "./overview.tsx";
import { type Route, useRoute } from "./route.ts";
import { Server } from "./server.tsx";
import { Servers } from "./servers.tsx";
import { Settings } from "./settings.tsx";
import { Shell } from "./shell.tsx";
import { createStore, type Known, type Store, useKnown } from "./store.ts";
import { Tools } from "./tools.tsx";
import { Waiting } from "./waiting.tsx";
import { describeAge, describeTime } from "./words.ts";

type View = (props: { readonly store: Store; readonly route: Route }) => JSX.Element;

const views: { readonly [name: string]: View } = {
  overview: Overview,
  servers: (props) => (props.route.rest === "" ? <Servers {...props} /> : <Server {...props} />),
  tools: Tools,
  calls: Calls,
  callers: Callers,
  waiting: Waiting,
  log: Log,
  settings: Settings,
};

function Page(): JSX.Element {
  const [key, setKey] = useState(takeKey);
  useEffect(() => {
    // An address with another key, opened in the same tab, does not load the page again.
    const onHashChange = (): void => setKey(takeKey);
    addEventListener("hashchange", onHashChange);
    return () => removeEventListener("hashchange", onHashChange);
  }, []);
  return key === undefined ? <KeyForm onKey={setKey} /> : <Gateway key={key} apiKey={key} onKey={setKey} />;
}

interface KeyProps {
  readonly onKey: (key: string) => void;
  readonly isRefused?: boolean;
}

/** Asks for the key: this tab has none, or the gateway refused it. */
function KeyForm({ onKey, isRefused = false }: KeyProps): JSX.Element {
  const [key, setKey] = useState("");
  return (
    <main class="alone">
      <Mark size={48} />
      <h1>Junctor</h1>
      {isRefused && (
        <p class="trouble" role="alert">
          The gateway does not know this key.
        </p>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (key === "") return;
          keepKey(key);
          onKey(key);
        }}
      >
        <div class="field">
          <label for="key">Admin key</label>
          <p class="hint" id="key-hint">
            The gateway prints an address with the key when it starts; a config may set one as
            junctor.admin.key.
          </p>
          <input
            id="key"
            type="password"
            autocomplete="off"
            aria-describedby="key-hint"
            value={key}
            onInput={({ currentTarget }) => setKey(currentTarget.value)}
          />
        </div>
        <button type="submit" class="ink">
          Open
        </button>
      </form>
    </main>
  );
}

function Gateway({ apiKey, onKey }: Pick<KeyProps, "onKey"> & { readonly apiKey: string }): JSX.Element {
  const store = useMemo(() => createStore(createApi(apiKey)), [apiKey]);
  useEffect(() => () => store.stop(), [store]);
  const known = useKnown(store);
  const route = useRoute();
  if (known.link === "refused") return <KeyForm onKey={onKey} isRefused />;
  const View = (Object.hasOwn(views, route.view) ? views[route.view] : undefined) ?? NoView;
  const key = `${route.view} ${route.view === "servers" ? route.rest.split("/")[0] : ""}`;
  return (
    <Shell store={store} route={route}>
      <ConnectionNote known={known} />
      <View key={key} store={store} route={route} />
    </Shell>
  );
}

function NoView({ route }: { readonly route: Route }): JSX.Element {
  return (
    <div class="view scroller">
      <h1>There is no view named {route.view}</h1>
      <p>
        <a href="#/">Overview</a>
      </p>
    </div>
  );
}

/** Says that the view is out of date while the page reconnects. */
function ConnectionNote({ known: { link, lostAt } }: { readonly known: Known }): JSX.Element {
  const text =
    link === "lost"
      ? lostAt === undefined
        ? "The gateway does not answer. Trying again…"
        : `Not connected since ${describeTime(lostAt)}. What you see is ${describeAge(Date.now() - lostAt)} old. Trying again…`
      : link === "full"
        ? "Too many pages of this gateway are open: close one. Trying again…"
        : "";
  return (
    <div role="status" class={text === "" ? "hidden" : "lost"}>
      {text}
    </div>
  );
}

const root = document.getElementById("root");
if (root !== null) render(<Page />, root);
