import { createHash } from "node:crypto";
import { readConfigText } from "../../config/index.ts";
import { type FollowedConfig, followConfig, type WaitingEdit } from "./follow-config.ts";

/** The config of a daemon, whose edits are taken by each of its gateways as its clients see them. */
export class FollowedScopes implements Pick<FollowedConfig, "inspect" | "agree"> {
  readonly #file: string;
  readonly #followed = new Set<FollowedConfig>();
  #text: string;

  /** `text` is what a person agreed to by starting the daemon. */
  constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
  }

  /** The text of the config that a person agreed to. */
  get text(): string {
    return this.#text;
  }

  /** Has a gateway take edits, from now on and those since the config was agreed to, until the returned function is called. */
  follow(options: Parameters<typeof followConfig>[0]): () => void {
    const followed = followConfig(options);
    this.#followed.add(followed);
    if (this.#isEdited()) void followed.look();
    return () => {
      this.#followed.delete(followed);
      followed[Symbol.dispose]();
    };
  }

  /** What waits, for any of the gateways. */
  inspect(): WaitingEdit {
    const edits = [...this.#followed].map((followed) => followed.inspect());
    return {
      waiting: [...new Set(edits.flatMap(({ waiting }) => waiting))],
      version: createHash("sha256")
        .update(JSON.stringify([readConfigText(this.#file), ...edits.map(({ version }) => version)]))
        .digest("hex"),
    };
  }

  /** Whether the config is used as it is now: every edit was taken, and nothing waits. */
  async isCurrent(): Promise<boolean> {
    if (this.#followed.size === 0) return !this.#isEdited();
    try {
      for (const followed of this.#followed) await followed.look();
      return this.inspect().waiting.length === 0;
    } catch {
      return false; // It is wrong, and the one before it is used.
    }
  }

  #isEdited(): boolean {
    try {
      return readConfigText(this.#file) !== this.#text;
    } catch {
      return true; // Looking tells what is wrong with it.
    }
  }

  async agree(version?: string): Promise<string | undefined> {
    try {
      if (version !== undefined && version !== this.inspect().version)
        return "the config was edited meanwhile";
      const text = readConfigText(this.#file);
      for (const followed of this.#followed) {
        const wrong = await followed.agree();
        if (wrong !== undefined) return wrong;
      }
      this.#text = text;
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }
}
