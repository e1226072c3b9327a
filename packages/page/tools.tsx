import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Callers, CatalogReport, ListedPrompt, ListedTool } from "../junctor/src/admin/answers.ts";
import { Dot, Empty, Heading, Search, ToolName, useWindow, WhenLoaded } from "./parts.tsx";
import { go, hrefOf, type Route } from "./route.ts";
import { describeType, isObject, type JsonSchema, kindOf, resolve } from "./schema.ts";
import { badgeOf, type Store, useKnown, useLoaded } from "./store.ts";
import { type Callee, TryIt } from "./try-it.tsx";
import { describeCount, describeNumber, describeShort, splitName, toPrettyJson } from "./words.ts";

/** Tools, prompts and resources of one caller or of all servers: to find, to read, to try. */
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
  const all = catalog.kind === "loaded" ? toCatalogItems(catalog.value) : [];
  const open = all.find(({ id }) => id === route.rest);
  const isDetail = route.rest !== "";
  return (
    <div class={`view tools-view ${isDetail ? "has-detail" : ""}`}>
      <section class="tool-list" aria-label="List">
        <header>
          <Heading>
            Tools{server === undefined ? "" : ` of ${server}`}{" "}
            <small class="quiet">{describeNumber(all.filter(({ kind }) => kind === "tool").length)}</small>
          </Heading>
          {names.length > 0 && <SeenBy names={names} as={as} route={route} />}
          {server !== undefined && <a href={hrefOf("tools", { as })}>All servers</a>}
        </header>
        <WhenLoaded loaded={catalog}>
          {(value) => (
            <ItemList
              all={all}
              catalog={value}
              chosen={route.rest}
              query={Object.fromEntries(query)}
              store={store}
            />
          )}
        </WhenLoaded>
      </section>
      <section class="chosen-tool" aria-label="Chosen">
        {open === undefined ? (
          <Empty
            title={
              isDetail && catalog.kind === "loaded"
                ? `There is no ${route.rest} here.`
                : "Choose one to read and to try it."
            }
          />
        ) : (
          <Chosen
            key={`${open.id} ${as}`}
            item={open}
            store={store}
            as={as}
            needsCaller={names.length > 0}
            from={route.query.get("from") ?? undefined}
          />
        )}
      </section>
    </div>
  );
}

function SeenBy({
  names,
  as,
  route,
}: {
  readonly names: readonly string[];
  readonly as: string | undefined;
  readonly route: Route;
}): JSX.Element {
  return (
    <label class="seen-by quiet">
      Seen as{" "}
      <select
        value={as ?? ""}
        onChange={({ currentTarget }) =>
          go(viewOf(route.rest), { as: currentTarget.value, server: route.query.get("server") ?? undefined })
        }
      >
        <option value="">everyone</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A tool, a prompt or a resource of the catalog. */
interface CatalogItem {
  readonly id: string;
  readonly kind: "tool" | "prompt" | "resource";
  readonly server: string;
  readonly text: string;
  readonly callee: Callee;
  readonly schema: JsonSchema;
  readonly definition: object;
}

const rowHeight = 48;

interface ListProps {
  readonly all: readonly CatalogItem[];
  readonly catalog: CatalogReport;
  readonly chosen: string;
  readonly query: { readonly [name: string]: string };
  readonly store: Store;
}

/** Grouped by server; while something is searched, the best match first. */
function ItemList({ all, catalog, chosen, query, store }: ListProps): JSX.Element {
  const { servers } = useKnown(store);
  const [words, setWords] = useState("");
  const found = rank(all, words);
  const rows: readonly (CatalogItem | string)[] = words === "" ? byServer(found) : found;
  const place = useWindow(rows.length, rowHeight);
  return (
    <>
      <Search label="What should it do?" value={words} onChange={setWords} />
      <p class="hidden" role="status">
        {describeCount(found.length, "thing")}
      </p>
      <div class="scroller">
        <div ref={place.ref}>
          {found.length === 0 && (
            <Empty title={all.length === 0 ? "Nothing is offered here." : "Nothing does that."} />
          )}
          <ul class="items">
            {place.above > 0 && <li style={{ height: `${place.above}px` }} aria-hidden="true" />}
            {rows.slice(place.first, place.last).map((row) => {
              if (typeof row === "string") {
                const server = servers.find(({ name }) => name === row);
                return (
                  <li key={`server ${row}`} class="of-server">
                    {server !== undefined && <Dot tone={badgeOf(server).tone} />}
                    <b>{row === "" ? "no server" : row}</b>
                    <span class="side quiet">{all.filter((item) => item.server === row).length}</span>
                  </li>
                );
              }
              return (
                <li key={row.id}>
                  <a
                    href={hrefOf(viewOf(row.id), query)}
                    aria-current={row.id === chosen ? "true" : undefined}
                  >
                    <span class="name">
                      {words === "" ? (
                        <b>{splitName(nameOf(row), row.server)[1]}</b>
                      ) : (
                        <ToolName name={nameOf(row)} server={row.server} />
                      )}
                      {row.kind !== "tool" && <span class="quiet"> {row.kind}</span>}
                    </span>
                    <span class="summary">{row.text}</span>
                  </a>
                </li>
              );
            })}
            {place.below > 0 && <li style={{ height: `${place.below}px` }} aria-hidden="true" />}
          </ul>
          <Collisions catalog={catalog} />
        </div>
      </div>
    </>
  );
}

function Collisions({ catalog: { collisions } }: { readonly catalog: CatalogReport }): JSX.Element | null {
  if (collisions.length === 0) return null;
  return (
    <details class="collisions">
      <summary>{describeCount(collisions.length, "collision")}</summary>
      {collisions.slice(0, 100).map(({ name, owner, others, advice }) => (
        <p key={name}>
          <code>{name}</code> belongs to {owner}; also claimed by {others.join(", ")}. {advice}
        </p>
      ))}
    </details>
  );
}

interface ChosenProps {
  readonly item: CatalogItem;
  readonly store: Store;
  readonly as: string | undefined;
  readonly from: string | undefined;
  readonly needsCaller: boolean;
}

function Chosen({ item, store, as, from, needsCaller }: ChosenProps): JSX.Element {
  const [tab, setTab] = useState<"try" | "definition">("try");
  const { status } = useKnown(store);
  return (
    <>
      <header class="tool-head">
        <a class="back phone-only" href={hrefOf("tools", { as })}>
          All tools
        </a>
        <h2>
          <ToolName name={nameOf(item)} server={item.server} />
        </h2>
        <p class="description quiet">{item.text}</p>
        <p class="chips">
          {hintsOf(item).map((hint) => (
            <span key={hint} class="fact">
              {hint}
            </span>
          ))}
        </p>
        <div class="tabs" role="tablist" aria-label="Of this tool">
          {(["try", "definition"] as const).map((id) => (
            <button key={id} type="button" role="tab" aria-selected={tab === id} onClick={() => setTab(id)}>
              {id === "try" ? "Try it" : "Definition"}
            </button>
          ))}
        </div>
      </header>
      {tab === "definition" ? (
        <Definition item={item} />
      ) : needsCaller && as === undefined ? (
        <Empty title="Choose a caller under “Seen as”.">
          <p>The call is made with its rights and limits.</p>
        </Empty>
      ) : (
        <TryIt
          api={store.api}
          callee={item.callee}
          schema={item.schema}
          as={as}
          from={from}
          url={status?.url}
        />
      )}
    </>
  );
}

/** What the server says of a tool, in words. */
function hintsOf({ kind, server, definition }: CatalogItem): readonly string[] {
  const { annotations = {} } = definition as Partial<ListedTool>;
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations;
  const tokens = Math.round(JSON.stringify(definition).length / 4.4);
  return [
    kind === "tool" ? (readOnlyHint === true ? "reads only" : "may write") : `${kind} of ${server}`,
    readOnlyHint !== true && destructiveHint === true ? "can destroy" : "",
    readOnlyHint !== true && idempotentHint === true ? "repeatable" : "",
    openWorldHint === true ? "reaches outside" : "",
    `${describeShort(tokens)} tokens`,
  ].filter(Boolean);
}

/** Its arguments as a table, and all of it as JSON. */
function Definition({ item: { schema, definition } }: { readonly item: CatalogItem }): JSX.Element {
  const rows = Object.entries(schema.properties ?? {});
  return (
    <div class="definition scroller">
      {rows.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Argument</th>
              <th scope="col">Type</th>
              <th scope="col">What it is</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, member]) => {
              const resolved = resolve(member, schema);
              return (
                <tr key={name}>
                  <td>
                    <code>{name}</code>
                    {schema.required?.includes(name) !== true && <span class="optional"> optional</span>}
                  </td>
                  <td class="quiet">
                    {describeType(resolved, kindOf(resolved, schema, 1), schema, undefined)}
                  </td>
                  <td>{resolved.schema.description ?? ""}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      <details open={rows.length === 0}>
        <summary>As JSON</summary>
        <pre class="code">{toPrettyJson(definition)}</pre>
      </details>
    </div>
  );
}

/** The path of the view with this item chosen, or with no item for the empty id. */
function viewOf(id: string): string {
  return id === "" ? "tools" : `tools/${encodeURIComponent(id)}`;
}

function nameOf({ id }: Pick<CatalogItem, "id">): string {
  return id.slice(id.indexOf(":") + 1);
}

function toCatalogItems({ tools, prompts, resources }: CatalogReport): readonly CatalogItem[] {
  return [
    ...tools.map(ofTool),
    ...prompts.map(ofPrompt),
    ...resources.map((resource): CatalogItem => {
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

function ofTool(tool: ListedTool): CatalogItem {
  const { name, server, title = "", description = title, inputSchema } = tool;
  const schema: JsonSchema = isObject(inputSchema) ? inputSchema : {};
  return {
    id: `tool:${name}`,
    kind: "tool",
    server,
    text: description,
    callee: { tool: name },
    schema,
    definition: tool,
  };
}

function ofPrompt(prompt: ListedPrompt): CatalogItem {
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

function byServer(items: readonly CatalogItem[]): readonly (CatalogItem | string)[] {
  const groups = new Map<string, CatalogItem[]>();
  for (const item of items) {
    const group = groups.get(item.server);
    if (group === undefined) groups.set(item.server, [item]);
    else group.push(item);
  }
  return [...groups].flatMap(([server, group]) => [server, ...group]);
}

/** Words in the name count more than those in the text; the more words are found, the better. */
function rank(items: readonly CatalogItem[], words: string): readonly CatalogItem[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return items;
  const scoreOf = ({ id, server, text }: CatalogItem): number => {
    const name = id.toLowerCase();
    const own = server.toLowerCase();
    const lowerText = text.toLowerCase();
    const scoreOfWord = (word: string): number =>
      own === word || name.endsWith(`_${word}`)
        ? 4
        : name.includes(word)
          ? 3
          : own.includes(word)
            ? 2
            : lowerText.includes(word)
              ? 1
              : -4;
    return wanted.reduce((sum, word) => sum + scoreOfWord(word), 0);
  };
  return items
    .map((item) => ({ item, score: scoreOf(item) }))
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score)
    .map(({ item }) => item);
}
