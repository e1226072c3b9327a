import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Callers, CatalogReport, ListedPrompt, ListedTool } from "../junctor/src/admin/answers.ts";
import { Heading, WhenLoaded } from "./parts.tsx";
import { go, type Route } from "./route.ts";
import type { JsonSchema } from "./schema-form.tsx";
import { type Store, useKnown, useLoaded } from "./store.ts";
import { type Callee, TryIt } from "./try-it.tsx";
import { describeCount, toPrettyJson } from "./words.ts";

/** Tools, prompts and resources of one caller or of all servers: to search, to read, to try. */
export function Tools({ store, route }: { readonly store: Store; readonly route: Route }): JSX.Element {
  const { catalogVersion, status } = useKnown(store);
  const as = route.query.get("as") ?? undefined;
  const server = route.query.get("server") ?? undefined;
  const query = new URLSearchParams({
    ...(as === undefined ? {} : { as }),
    ...(server === undefined ? {} : { server }),
  });
  const catalog = useLoaded<CatalogReport>(store.api, `/api/catalog?${query.toString()}`, catalogVersion);
  const callers = useLoaded<Callers>(store.api, "/api/callers", status?.hasKeys);
  const names = callers.kind === "loaded" ? callers.value.callers.map(({ name }) => name) : [];
  return (
    <>
      <Heading>Tools{server === undefined ? "" : ` of ${server}`}</Heading>
      {names.length > 0 && (
        <div class="field inline">
          <label for="as">Seen as</label>
          <select
            id="as"
            value={as ?? ""}
            onChange={({ currentTarget }) =>
              go(viewOf(route.rest), { as: currentTarget.value, server: server ?? "" })
            }
          >
            <option value="">everything, no caller</option>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </div>
      )}
      {server !== undefined && (
        <p>
          <a href={`#/tools?${new URLSearchParams(as === undefined ? {} : { as }).toString()}`}>
            All servers
          </a>
        </p>
      )}
      <WhenLoaded loaded={catalog}>
        {(value) => (
          <CatalogView
            catalog={value}
            store={store}
            as={as}
            query={query}
            chosen={route.rest}
            needsCaller={names.length > 0}
          />
        )}
      </WhenLoaded>
    </>
  );
}

/** One thing of the catalog, whatever its kind. */
interface Listed {
  readonly id: string;
  readonly kind: "tool" | "prompt" | "resource";
  readonly server: string;
  readonly text: string;
  readonly callee: Callee;
  readonly schema: JsonSchema;
  readonly definition: object;
}

interface CatalogProps {
  readonly catalog: CatalogReport;
  readonly store: Store;
  readonly as: string | undefined;
  /** Of the address: it stays when another thing is chosen. */
  readonly query: URLSearchParams;
  readonly chosen: string;
  readonly needsCaller: boolean;
}

function CatalogView({ catalog, store, as, query, chosen, needsCaller }: CatalogProps): JSX.Element {
  const [words, setWords] = useState("");
  const all = toListed(catalog);
  const found = all.filter((item) => matches(item, words));
  const open = all.find(({ id }) => id === chosen);
  return (
    <div class="split">
      <section aria-label="List">
        <div class="field">
          <label for="search">Search</label>
          <input
            id="search"
            type="search"
            value={words}
            onInput={({ currentTarget }) => setWords(currentTarget.value)}
          />
        </div>
        <p class="quiet" role="status">
          {describeCount(found.length, "thing")}
          {found.length > maxListed && `, the first ${maxListed} are shown`}
        </p>
        <ul class="list">
          {found.slice(0, maxListed).map((item) => (
            <li key={item.id}>
              <a
                href={`#/${viewOf(item.id)}${query.size === 0 ? "" : `?${query.toString()}`}`}
                aria-current={item.id === chosen ? "true" : undefined}
              >
                <span class="name">{nameOf(item)}</span>
                {item.kind !== "tool" && <span class="quiet"> {item.kind}</span>}
                <span class="summary">{item.text}</span>
              </a>
            </li>
          ))}
        </ul>
        {catalog.collisions.length > 0 && (
          <details>
            <summary>{describeCount(catalog.collisions.length, "collision")}</summary>
            {catalog.collisions.map(({ name, owner, others, advice }) => (
              <p key={name}>
                <code>{name}</code> belongs to {owner}; also claimed by {others.join(", ")}. {advice}
              </p>
            ))}
          </details>
        )}
      </section>
      <section aria-label="Chosen" class="chosen">
        {open === undefined ? (
          <p class="quiet">
            {chosen === "" ? "Choose one to see its schema and to try it." : `There is no ${chosen} here.`}
          </p>
        ) : (
          <Chosen key={`${open.id} ${as}`} item={open} store={store} as={as} needsCaller={needsCaller} />
        )}
      </section>
    </div>
  );
}

const maxListed = 200;

function Chosen(
  props: Omit<CatalogProps, "catalog" | "chosen" | "query"> & { readonly item: Listed },
): JSX.Element {
  const { item, store, as, needsCaller } = props;
  return (
    <>
      <h2>{nameOf(item)}</h2>
      <p class="quiet">
        {item.kind} of {item.server}
      </p>
      <p class="description">{item.text}</p>
      <details>
        <summary>Definition</summary>
        <pre class="text">{toPrettyJson(item.definition)}</pre>
      </details>
      <h3>Try it</h3>
      {needsCaller && as === undefined ? (
        <p>Choose a caller under “Seen as”: the call is made with its rights and limits.</p>
      ) : (
        <TryIt api={store.api} callee={item.callee} schema={item.schema} as={as} />
      )}
    </>
  );
}

/** The view with this thing chosen; with none for the empty id. */
function viewOf(id: string): string {
  return id === "" ? "tools" : `tools/${encodeURIComponent(id)}`;
}

function nameOf({ id }: Pick<Listed, "id">): string {
  return id.slice(id.indexOf(":") + 1);
}

function toListed({ tools, prompts, resources }: CatalogReport): readonly Listed[] {
  return [
    ...tools.map(ofTool),
    ...prompts.map(ofPrompt),
    ...resources.map((resource): Listed => {
      const { uri, server = "", name = "", mimeType = "" } = resource;
      const text = [name, mimeType].filter((part) => part !== "").join(", ");
      return {
        id: `resource:${uri}`,
        kind: "resource",
        server,
        text,
        callee: { resource: uri },
        schema: {},
        definition: resource,
      };
    }),
  ];
}

function ofTool(tool: ListedTool): Listed {
  const { name, server, title = "", description = title, inputSchema } = tool;
  return {
    id: `tool:${name}`,
    kind: "tool",
    server,
    text: description,
    callee: { tool: name },
    schema: inputSchema,
    definition: tool,
  };
}

function ofPrompt(prompt: ListedPrompt): Listed {
  const { name, server, description = "", arguments: wanted = [] } = prompt;
  const properties = Object.fromEntries(
    wanted.map(({ name: key, description: text = "" }) => [key, { type: "string", description: text }]),
  );
  const required = wanted.filter((each) => each.required === true).map((each) => each.name);
  const schema: JsonSchema = { type: "object", properties, required };
  return {
    id: `prompt:${name}`,
    kind: "prompt",
    server,
    text: description,
    callee: { prompt: name },
    schema,
    definition: prompt,
  };
}

/** Every word must be in the name, the server or the text. */
function matches({ id, server, text }: Listed, words: string): boolean {
  const all = `${id} ${server} ${text}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
