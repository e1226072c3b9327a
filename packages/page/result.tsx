import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { describeBytes, toPrettyJson, toText } from "./words.ts";

/** Longest text that is shown at once: a browser takes long to lay out more. */
const maxShown = 100_000;

/** A text of a server: shown as text, whatever it contains. */
export function LongText({ text }: { readonly text: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && text.length > maxShown;
  return (
    <>
      <pre class="code text">{isCut ? text.slice(0, maxShown) : text}</pre>
      {isCut && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {text.length} characters
        </button>
      )}
    </>
  );
}

interface ContentBlock {
  readonly type?: unknown;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly blob?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: ContentBlock;
  readonly role?: unknown;
  readonly content?: ContentBlock;
}

/** The result of a tool, a prompt or a resource: its parts by kind, and all of it as JSON. */
export function ResultView({ result }: { readonly result: unknown }): JSX.Element {
  const { content, contents, messages, structuredContent } = (result ?? {}) as {
    readonly [key: string]: unknown;
  };
  const blocks = [content, contents, messages].flatMap((list) =>
    Array.isArray(list) ? (list as ContentBlock[]) : [],
  );
  return (
    <div class="result">
      {blocks.map((block, i) => (
        <Block key={i} block={block} />
      ))}
      {structuredContent !== undefined && (
        <>
          <h3>Structured content</h3>
          <LongText text={toPrettyJson(structuredContent)} />
        </>
      )}
      <details>
        <summary>As JSON</summary>
        <LongText text={toPrettyJson(result)} />
      </details>
    </div>
  );
}

function Block({ block }: { readonly block: ContentBlock }): JSX.Element {
  if (block.role !== undefined && block.content !== undefined) {
    return (
      <section>
        <h3>{toText(block.role)}</h3>
        <Block block={block.content} />
      </section>
    );
  }
  if (typeof block.text === "string") return <LongText text={block.text} />;
  if (block.type === "resource" && block.resource !== undefined) {
    return (
      <section>
        <h3>{toText(block.resource.uri)}</h3>
        <Block block={block.resource} />
      </section>
    );
  }
  if (block.type === "resource_link") {
    return (
      <p>
        Resource <code>{toText(block.uri)}</code> {typeof block.name === "string" && block.name}
      </p>
    );
  }
  const data = typeof block.data === "string" ? block.data : block.blob;
  if (typeof data === "string")
    return <Media data={data} mimeType={typeof block.mimeType === "string" ? block.mimeType : ""} />;
  return <LongText text={toPrettyJson(block)} />;
}

const mimeForm = /^(image|audio|video)\/[\w.+-]+$/;

/** Images and sound of the types a browser shows; no script of an image runs inside `img`. */
function Media({ data, mimeType }: { readonly data: string; readonly mimeType: string }): JSX.Element {
  const source = `data:${mimeType};base64,${data}`;
  const kind = mimeForm.exec(mimeType)?.[1];
  if (kind === "image") return <img src={source} alt={`Image of the result, ${mimeType}`} />;
  if (kind === "audio")
    return <audio controls src={source} aria-label={`Sound of the result, ${mimeType}`} />;
  return (
    <p>
      {describeBytes(Math.floor((data.length * 3) / 4))} of {mimeType === "" ? "an unknown type" : mimeType}
    </p>
  );
}
