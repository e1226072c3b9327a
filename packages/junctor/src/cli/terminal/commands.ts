// The table of commands. Parsing, help, completion, hints for mistakes and docs/reference/cli.md are derived from it. In texts a command is
// named without the program (`tools`): how the program is typed is decided elsewhere.

/** A flag; one with a `value` takes one, and any other is a switch. */
export interface FlagRow {
  /** What stands for the value in the help, such as `PORT`. */
  readonly value?: string;
  readonly help: string;
  /** One letter that means the same. */
  readonly short?: string;
  /** Whether it may be given several times. */
  readonly many?: true;
  /** What its value is completed with. */
  readonly complete?: Completion;
}

/** What a word is completed with: names that are known, these words, or files, which the shell knows. */
export type Completion = "servers" | "clients" | "profiles" | "tools" | "codes" | readonly string[];

export interface CommandRow {
  /** Its place in the help of the program. */
  readonly group: "Every day" | "Your config" | "One server" | "What runs";
  /** Its text in the help of the program, or the command whose line it shares there. */
  readonly brief: string | { readonly beside: string };
  readonly summary: string;
  /** What follows the name, without flags. */
  readonly operands?: string;
  /** What each operand is completed with; the last one goes for all that follow. */
  readonly complete?: readonly Completion[];
  readonly flags: { readonly [name: string]: FlagRow };
  readonly shared?: readonly (keyof typeof sharedFlags)[];
  /** Whether the command of a server may follow a `--`. */
  readonly takesCommand?: true;
  /** Command lines that work as they are, without the program; after two spaces comes what one does. */
  readonly examples: readonly string[];
  /** What the exit code 1 means here. */
  readonly failure?: string;
  /** Other names that people try for it. */
  readonly guesses?: string;
}

/** Flags that several commands have. */
const sharedFlags = {
  /** How a config is named. */
  config: {
    config: {
      value: "FILE",
      help: "a file with mcpServers or servers, as Claude, Cursor or VS Code write it",
    },
    "unsafe-config": { help: "use the config though other users may write it" },
  },
  /** For commands that talk to a server. */
  target: {
    config: { value: "FILE", help: "a config: the servers of it that are needed, or the one that is named" },
    "unsafe-config": { help: "use the config though other users may write it" },
    "no-daemon": { help: "start the servers of --config here, also while the daemon runs them" },
    header: { value: "NAME:VALUE", help: "a header for every HTTP request; may be repeated", many: true },
    env: {
      value: "NAME[=VALUE]",
      help: "a variable the server's command gets, or gets from us; may be repeated",
      many: true,
    },
    timeout: {
      value: "SECONDS",
      help: "give up after this long in all, connecting included (default: 30 to connect, 60 without a sign of life, 600 for a call)",
    },
  },
  profile: {
    profile: {
      value: "NAME",
      help: "a profile of --config, or of the gateway at the URL",
      complete: "profiles",
    },
  },
  /** For commands that list things and read one of them. */
  listing: {
    json: { help: "everything, as JSON" },
    server: {
      value: "URL|NAME",
      help: "the server (default http://127.0.0.1:7780/mcp), or one of --config",
      complete: "servers",
    },
  },
  /** For commands that ask what runs. */
  gateway: {
    config: { value: "FILE", help: "the gateway or daemon that was started with this config" },
    pid: {
      value: "PID",
      help: "the gateway or daemon with this process number; of a worker, that one alone",
    },
  },
  /** For commands that edit our config. */
  own: {
    config: { value: "FILE", help: "our config (default ~/.junctor/junctor.json)" },
  },
  write: {
    config: { value: "FILE", help: "our config (default ~/.junctor/junctor.json)" },
    yes: { help: "write without asking", short: "y" },
    "dry-run": { help: "show what would be written, and write nothing" },
  },
  secrets: {
    secrets: { help: "keep values of variables in files of their own (~/.junctor/env), not in the config" },
    keychain: {
      help: "keep values of variables and headers in the keychain of the system, not in the config",
    },
  },
} as const;

export const commands = {
  serve: {
    group: "Every day",
    brief: "serve all servers of a config at one URL",
    summary:
      "Serve MCP servers behind one endpoint, with a page to see them (`open` opens it); without a config, four demo tools. With the file of an app, serve that app alone.",
    operands: "[APP]",
    flags: {
      host: { value: "HOST", help: "the address to listen on (default 127.0.0.1)" },
      port: { value: "PORT", help: "the HTTP port (default 7780; 0 picks a free one)" },
      stdio: { help: "on standard input and output instead, for a client that starts us" },
      tcp: { value: "PORT", help: "on a TCP port instead, one JSON message a line" },
      profile: {
        value: "NAME",
        help: "a profile of the config alone, without /mcp/NAME paths",
        complete: "profiles",
      },
      workers: { value: "N", help: "serve in this many processes; auto: one for each core (default 1)" },
      reload: {
        value: "HOW",
        help: "edits of the config: safe ones at once (safe), all (trust), none (off)",
        complete: ["safe", "trust", "off"],
      },
      "log-level": {
        value: "LEVEL",
        help: "trace, debug, info, warn, error or silent (default info)",
        complete: ["trace", "debug", "info", "warn", "error", "silent"],
      },
    },
    shared: ["config"],
    examples: [
      "serve  the config found here, or the demo tools, on http://127.0.0.1:7780/mcp",
      "serve --config .mcp.json  every server of the file behind one URL",
      "serve --config .mcp.json --workers auto  the same on all cores",
      "serve --config .mcp.json --stdio  the same for a client that starts us",
      "serve app.mjs  the app that a file exports; --stdio for a client that starts us",
    ],
    guesses: "start run up gateway proxy server host listen launch",
  },
  check: {
    group: "Every day",
    brief: "start every server of a config; explain errors",
    summary:
      "Check a config: start or reach every server, and say what each speaks, offers, and what is wrong.",
    flags: {
      json: { help: "the same as one JSON object: file, servers, issuers, collisions, warnings" },
      timeout: {
        value: "SECONDS",
        help: "how long servers may take to start and list their tools (default 5m, each while it makes progress)",
      },
    },
    shared: ["config"],
    examples: [
      "check --config .mcp.json",
      "check --config .mcp.json --timeout 2m  servers that npx has yet to install",
      "check --config mcp.json --json | jq .",
    ],
    failure: "a server or an issuer cannot be used",
    guesses: "test validate verify doctor lint diagnose ping",
  },
  tools: {
    group: "Every day",
    brief: "list the tools of a server or a config; call one",
    summary: "List the tools of a server, with their arguments as `call` takes them.",
    operands: "[URL|NAME]",
    complete: ["servers"],
    takesCommand: true,
    flags: {
      json: { help: "the whole definitions, as JSON" },
      server: {
        value: "URL",
        help: "the same as the operand (default http://127.0.0.1:7780/mcp)",
        complete: "servers",
      },
    },
    shared: ["profile", "target"],
    examples: [
      "tools  the server that npm start runs",
      'tools https://example.com/mcp --header "Authorization: Bearer $KEY"',
      "tools tcp://127.0.0.1:7781",
      "tools --config .mcp.json  all servers of a config, as the gateway shows them",
      "tools github --config .mcp.json  one of them by itself",
      "tools -- npx -y @modelcontextprotocol/server-everything",
    ],
    guesses: "list ls show get inspect inspector",
  },
  call: {
    group: "Every day",
    brief: { beside: "tools" },
    summary: "Call a tool and show what it gives, as it comes. `tools` lists the arguments.",
    operands: "TOOL [KEY=VALUE…]",
    complete: ["tools"],
    takesCommand: true,
    flags: {
      args: {
        value: "JSON",
        help: "the arguments as one JSON object instead; - reads it from the standard input",
      },
      json: { help: "the whole result, as JSON" },
      detach: { help: "if the call becomes a task, print how to come back to it and do not wait" },
      key: {
        value: "KEY",
        help: "an idempotency key: the same command again gives the end of the first call, and runs nothing twice",
      },
      server: {
        value: "URL|NAME",
        help: "the server (default http://127.0.0.1:7780/mcp), or one of --config",
        complete: "servers",
      },
    },
    shared: ["profile", "target"],
    examples: [
      "call add a=2 b=3  on the server that npm start runs",
      "call countdown from=5 --server http://127.0.0.1:8080/mcp",
      "call tag name=fox colour=red colour=brown  a key given twice is a list",
      'call search --args \'{"query":"fox"}\' --json | jq .content',
      "call add --help  what a tool takes",
      "call echo message=hello -- node server.mjs",
    ],
    failure: "the tool says that it failed",
    guesses: "exec execute invoke use try",
  },
  status: {
    group: "Every day",
    brief: "show how the servers that run are; open the page",
    summary:
      "Show how the daemon and running gateways are, with their servers and the address of their page.",
    flags: { json: { help: "as JSON, one line each" } },
    shared: ["gateway"],
    examples: ["status", "status --config .mcp.json --json"],
    failure: "a server is down",
    guesses: "ps info health servers state running",
  },
  top: {
    group: "Every day",
    brief: { beside: "status" },
    summary: "Watch what a running gateway does: what is wrong, the busiest tools, who calls.",
    flags: {
      once: { help: "once, as into a pipe, instead of again every 2 s" },
      json: { help: "once, as JSON" },
    },
    shared: ["gateway"],
    examples: ["top", "top --once"],
    guesses: "watch live monitor htop",
  },
  usage: {
    group: "Every day",
    brief: { beside: "status" },
    summary:
      "Who used which tools how often, how slow they were, and about how many tokens went through, in all gateways of yours.",
    flags: {
      by: {
        value: "WHAT",
        help: "caller, tool or server (default tool)",
        complete: ["caller", "tool", "server"],
      },
      since: { value: "TIME", help: "how far back, at most 30d, such as 24h (default 7d)" },
      json: { help: "as JSON, with all rows" },
    },
    examples: ["usage --by caller", "usage --by server --since 24h --json"],
    guesses: "stats statistics metrics tokens spend",
  },
  open: {
    group: "Every day",
    brief: { beside: "status" },
    summary:
      "Open the admin page of what runs in the browser: servers, tools to try, calls, charts and the log.",
    flags: { print: { help: "print the address, with its key, and open nothing" } },
    shared: ["gateway"],
    examples: ["open  or its address, where there is no browser", "open --print  the address alone"],
    guesses: "ui dashboard page admin web gui browser browse view console",
  },
  install: {
    group: "Every day",
    brief: "put Junctor into Claude, Cursor and other clients",
    summary:
      "Put Junctor into clients: take over the servers they have, and write one entry for all of them.",
    operands: "CLIENT…",
    complete: ["clients"],
    flags: {
      all: { help: "every client that is on this machine" },
      keep: { help: "leave the servers in the client's file, too" },
      project: { help: "the file of the project in this folder instead of the user's" },
      file: { value: "FILE", help: "another file of the client, such as that of a VS Code profile" },
    },
    shared: ["write"],
    examples: ["install cursor --dry-run  show what would change", "install --all  every client there is"],
    failure: "a client could not be edited",
    guesses: "init setup configure onboard",
  },
  uninstall: {
    group: "Every day",
    brief: { beside: "install" },
    summary: "Take Junctor out of clients, and give them back the servers they had.",
    operands: "CLIENT…",
    complete: ["clients"],
    flags: { all: { help: "every client it was installed into" } },
    shared: ["write"],
    examples: ["uninstall cursor", "uninstall --all --yes"],
    failure: "a client could not be edited",
  },
  add: {
    group: "Your config",
    brief: "add a server by command, URL or name; take one out",
    summary:
      "Add a server to our config, by its command, its URL or its name in a registry, after it was started once to see that it works.",
    operands: "NAME [URL]",
    takesCommand: true,
    flags: {
      env: { value: "NAME=VALUE", help: "a variable of its environment; may be repeated", many: true },
      header: { value: "NAME: VALUE", help: "a header for its URL; may be repeated", many: true },
      cwd: { value: "FOLDER", help: "the folder it runs in" },
      replace: { help: "replace the server of that name" },
      "no-check": { help: "do not start it" },
      registry: { value: "URL", help: "the registry that NAME[@VERSION] is in (default the official one)" },
      set: {
        value: "NAME=VALUE",
        help: "a value that a server of a registry wants; may be repeated",
        many: true,
      },
      yes: { help: "add a server of a registry without asking", short: "y" },
    },
    shared: ["own", "secrets"],
    examples: [
      "add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes",
      "add docs https://example.com/mcp --header 'X-Key: ${DOCS_KEY}'",
      "add io.github.OWNER/NAME@1.2.0    from the registry of MCP servers",
    ],
    guesses: "new create register connect",
  },
  search: {
    group: "Your config",
    brief: { beside: "add" },
    summary: "Find servers in the registry of MCP servers by words in their names. `add` adds one.",
    operands: "WORDS…",
    flags: {
      registry: { value: "URL", help: "another registry than the official one" },
      json: { help: "as JSON" },
    },
    examples: ["search github", "search files --registry https://registry.example.com"],
    failure: "nothing was found",
    guesses: "find lookup registry",
  },
  remove: {
    group: "Your config",
    brief: { beside: "add" },
    summary: "Take servers out of our config.",
    operands: "NAME…",
    complete: ["servers"],
    flags: {},
    shared: ["own"],
    examples: ["remove github"],
    guesses: "rm delete del unregister",
  },
  enable: {
    group: "Your config",
    brief: "switch a server on or off, and keep its entry",
    summary: "Switch servers of our config on again, after they were started once to see that they work.",
    operands: "NAME…",
    complete: ["servers"],
    flags: { "no-check": { help: "do not start them" } },
    shared: ["own"],
    examples: ["enable github"],
  },
  disable: {
    group: "Your config",
    brief: { beside: "enable" },
    summary: "Switch servers of our config off, and keep their entries.",
    operands: "NAME…",
    complete: ["servers"],
    flags: {},
    shared: ["own"],
    examples: ["disable github slack"],
  },
  import: {
    group: "Your config",
    brief: "copy the servers of a client; list all clients",
    summary: "Copy the servers of a client, or of a file, into our config. The client is not changed.",
    operands: "CLIENT|FILE",
    complete: ["clients"],
    flags: {},
    shared: ["write", "secrets"],
    examples: ["import cursor", "import ./.mcp.json --dry-run"],
  },
  clients: {
    group: "Your config",
    brief: { beside: "import" },
    summary:
      "List the clients that Junctor knows, their files, and which servers have a process for each project.",
    flags: { json: { help: "as JSON" } },
    shared: ["own"],
    examples: ["clients"],
  },
  config: {
    group: "Your config",
    brief: "show a config as understood; print its schema",
    summary: "Show a config as it is understood, or print the JSON Schema that editors complete a config by.",
    operands: "show|schema",
    complete: [["show", "schema"]],
    flags: {
      all: { help: "also the settings of which the config says nothing" },
      json: { help: "every setting as JSON: path, value, from, line, variables" },
    },
    shared: ["config"],
    examples: [
      "config show  what the config says, each setting with its line and variables",
      "config show --all  also every default",
      "config schema > junctor.schema.json",
    ],
    guesses: "schema settings",
  },
  trust: {
    group: "Your config",
    brief: "approve what servers offer; say who may use a tool",
    summary:
      "Approve what servers offer: show what is new, changed or gone since, ask, and write junctor.lock.",
    operands: "[SERVER…]",
    complete: ["servers"],
    flags: {
      yes: { help: "approve without asking", short: "y" },
      timeout: {
        value: "SECONDS",
        help: "how long servers may take to start and list their tools (default 5m, each while it makes progress)",
      },
    },
    shared: ["config"],
    examples: [
      "trust --config .mcp.json  every server of the file",
      "trust github --config .mcp.json  one of them; the others stay as they were approved",
    ],
    failure: "it was not approved, or a server could not be listed",
  },
  why: {
    group: "Your config",
    brief: { beside: "trust" },
    summary:
      "Say whether a caller may use a tool, and which setting of the config decides. Starts no server.",
    operands: "CALLER TOOL",
    flags: {
      groups: { value: "LIST", help: "groups that the caller has, with commas between them" },
      scopes: { value: "LIST", help: "scopes of its token, with commas between them" },
      client: { value: "ID", help: "the OAuth client that acts for it" },
      json: { help: "the same as one JSON object: caller, tool, decision, setting, reason, scopes" },
    },
    shared: ["config"],
    examples: [
      "why alice github__search  the key alice",
      "why corp:42 github__delete_repo --groups eng  a caller with a token of the issuer corp",
    ],
    failure: "the caller may not use the tool",
  },
  resources: {
    group: "One server",
    brief: "list resources, prompts or skills; read one",
    summary: "List the resources and resource templates of a server, or read one resource.",
    operands: "[URL|NAME] | read URI",
    complete: ["servers"],
    takesCommand: true,
    flags: {},
    shared: ["listing", "target"],
    examples: [
      "resources  of the server that npm start runs",
      "resources read file:///notes.md --server http://127.0.0.1:8080/mcp",
      "resources read img://logo -- node server.mjs > logo.png",
      "resources --config .mcp.json  of all servers of a config",
    ],
  },
  prompts: {
    group: "One server",
    brief: { beside: "resources" },
    summary: "List the prompts of a server, or get one with its arguments filled in.",
    operands: "[URL|NAME] | get PROMPT [KEY=VALUE…]",
    complete: ["servers"],
    takesCommand: true,
    flags: {},
    shared: ["listing", "target"],
    examples: [
      "prompts  of the server that npm start runs",
      "prompts get review code='x = 1' --server http://127.0.0.1:8080/mcp",
      "prompts -- npx -y @modelcontextprotocol/server-everything",
    ],
  },
  skills: {
    group: "One server",
    brief: { beside: "resources" },
    summary: "List the skills of a server, or read one: its SKILL.md, or another of its files.",
    operands: "[URL|NAME] | read URI [FILE]",
    complete: ["servers"],
    takesCommand: true,
    flags: {},
    shared: ["listing", "target"],
    examples: [
      "skills http://127.0.0.1:8080/mcp  list; no file is read",
      "skills read skill://acme/refunds/SKILL.md  checked by size, digest and front matter",
      "skills read skill://acme/refunds/SKILL.md examples/late.md",
    ],
  },
  task: {
    group: "One server",
    brief: "return to a long call; what tools cost a model",
    summary: "Come back to a task that `call` left running: wait for its result, look at it or cancel it.",
    operands: "REF",
    takesCommand: true,
    flags: {
      status: { help: "say where the task is, and do not wait" },
      cancel: { help: "cancel the task" },
      json: { help: "the whole result or status, as JSON" },
      server: {
        value: "URL|NAME",
        help: "the server (default http://127.0.0.1:7780/mcp), or one of --config",
        complete: "servers",
      },
    },
    shared: ["target"],
    examples: [
      "task REF  wait for the result; Ctrl-C leaves the task running",
      "task REF --status --server http://127.0.0.1:8080/mcp",
      "task REF --cancel",
    ],
    failure: "the task failed",
  },
  cost: {
    group: "One server",
    brief: { beside: "task" },
    summary:
      "Estimate what the tools cost a model that reads all their definitions: by server, and the largest.",
    operands: "[URL|NAME]",
    complete: ["servers"],
    takesCommand: true,
    flags: {
      json: { help: "as JSON" },
      server: {
        value: "URL",
        help: "the same as the operand (default http://127.0.0.1:7780/mcp)",
        complete: "servers",
      },
    },
    shared: ["profile", "target"],
    examples: [
      "cost --config .mcp.json  all servers of a config",
      "cost --config .mcp.json --profile small  one of its profiles",
      "cost -- npx -y @modelcontextprotocol/server-everything",
    ],
  },
  login: {
    group: "One server",
    brief: "sign in to servers that want OAuth",
    summary: "Sign in to a server that wants OAuth. The access is stored, and renewed by itself.",
    operands: "URL|NAME",
    complete: ["servers"],
    flags: {
      "no-browser": {
        help: "open no browser: show the address, and take the final address from the terminal",
      },
    },
    shared: ["config"],
    examples: [
      "login https://mcp.example.com/mcp",
      "login linear  a server of the config in this folder",
      "login linear --no-browser  on a machine without a browser",
    ],
    guesses: "auth signin sign-in authenticate authorize",
  },
  logout: {
    group: "One server",
    brief: { beside: "login" },
    summary: "Forget the access to a server, and have its authorization server forget it.",
    operands: "URL|NAME",
    complete: ["servers"],
    flags: {
      caller: {
        value: "NAME",
        help: "take the account of a caller of the gateway away, instead of your own",
      },
    },
    shared: ["config"],
    examples: [
      "logout https://mcp.example.com/mcp",
      "logout linear",
      "logout linear --caller ada  where each caller has its own account",
    ],
    guesses: "signout sign-out",
  },
  logins: {
    group: "One server",
    brief: { beside: "login" },
    summary: "List the servers you are signed in to.",
    flags: { json: { help: "the same as JSON" } },
    examples: ["logins"],
  },
  types: {
    group: "One server",
    brief: "print it as TypeScript; run yours as you write it",
    summary:
      "Print the arguments, structured results and prompts of a server as TypeScript, for `connect<Server>()` of @junctor/client.",
    operands: "[URL|NAME]",
    complete: ["servers"],
    takesCommand: true,
    flags: {},
    shared: ["profile", "target"],
    examples: [
      "types https://example.com/mcp > server.d.ts",
      "types github --config .mcp.json > github.d.ts  a server of a config",
      "types -- node server.mjs > server.d.ts",
    ],
    guesses: "typescript dts codegen typegen generate",
  },
  dev: {
    group: "One server",
    brief: { beside: "types" },
    summary:
      "Serve a program that you write over HTTP, and start its next version when you save a file: no call and no session is lost.",
    operands: "[FILE]",
    takesCommand: true,
    flags: {
      port: { value: "PORT", help: "the HTTP port (default 7780; 0 picks a free one)" },
      watch: {
        value: "FOLDER",
        help: "the folder whose files count (default: that of FILE, or the current one)",
      },
      env: {
        value: "NAME[=VALUE]",
        help: "a variable the program gets, or gets from us; may be repeated",
        many: true,
      },
    },
    examples: [
      "dev server.mjs",
      "dev server.ts  with Node 22.18 or newer, or with tsx",
      "dev -- python server.py",
    ],
    guesses: "develop hot nodemon",
  },
  record: {
    group: "One server",
    brief: "record it, play it back, find changes",
    summary:
      "Serve a server on standard input and output, and write what it lists and answers to a file that `replay` serves.",
    operands: "FILE [URL|NAME]",
    takesCommand: true,
    flags: { port: { value: "PORT", help: "serve over HTTP at this port instead (0 picks a free one)" } },
    shared: ["target"],
    examples: [
      "record weather.jsonl -- node server.mjs  for a client that starts us",
      "record docs.jsonl https://example.com/mcp --port 7781",
      "record github.jsonl github --config .mcp.json",
    ],
    guesses: "capture tape cassette",
  },
  replay: {
    group: "One server",
    brief: { beside: "record" },
    summary:
      "Serve what `record` wrote: the same lists, and for each call the result that it had then. Nothing else is started.",
    operands: "FILE",
    flags: { port: { value: "PORT", help: "serve over HTTP at this port instead (0 picks a free one)" } },
    examples: ["replay weather.jsonl  for a client that starts us", "replay weather.jsonl --port 7781"],
    guesses: "playback mock stub fake",
  },
  diff: {
    group: "One server",
    brief: { beside: "record" },
    summary:
      "Compare a server with what `record` wrote of it: each definition, and each call, which is made again with the answers of then.",
    operands: "FILE [URL|NAME]",
    takesCommand: true,
    flags: { definitions: { help: "compare the lists alone, and call nothing" } },
    shared: ["target"],
    examples: [
      "diff weather.jsonl -- node server.mjs",
      "diff docs.jsonl https://example.com/mcp --definitions  its lists alone",
    ],
    failure: "something differs",
    guesses: "compare drift changes",
  },
  logs: {
    group: "What runs",
    brief: "read the log; start one server again",
    summary: "Show the last lines of the log of the daemon or a running gateway, and those to come.",
    flags: {
      follow: { help: "go on with the lines to come, until Ctrl-C", short: "f" },
      level: {
        value: "LEVEL",
        help: "the least important lines to show: debug, info, warn or error",
        complete: ["debug", "info", "warn", "error"],
      },
      json: { help: "as JSON, one line each" },
    },
    shared: ["gateway"],
    examples: ["logs -f", "logs --level warn"],
    guesses: "tail journal",
  },
  restart: {
    group: "What runs",
    brief: { beside: "logs" },
    summary: "Restart the daemon, or one server of the daemon or of a running gateway.",
    operands: "[NAME]",
    complete: ["servers"],
    flags: {},
    shared: ["gateway"],
    examples: [
      "restart  the daemon; its clients go on at the next",
      "restart github  one server, for all clients that use it",
    ],
    failure: "it did not come up again",
    guesses: "reboot",
  },
  approvals: {
    group: "What runs",
    brief: "answer calls that wait for your yes",
    summary: "Show the calls that wait for the person who runs the gateway, and agree to one or deny it.",
    operands: "[list|show ID|approve ID|deny ID]",
    flags: { json: { help: "the list as JSON, one line each" } },
    shared: ["gateway"],
    examples: ["approvals", "approvals show 5f0c1d2e3a4b", "approvals approve 5f0c1d2e3a4b"],
    failure: "the call does not wait any more",
    guesses: "approve deny ask yes confirm waiting pending",
  },
  reload: {
    group: "What runs",
    brief: "take an edited config; end the daemon",
    summary: "Have a running gateway take the part of its edited config that waits for you.",
    flags: {
      config: { value: "FILE", help: "only the gateway that was started with this config" },
      yes: { help: "take it without asking", short: "y" },
    },
    examples: ["reload", "reload --config .mcp.json --yes"],
    failure: "an edit was not taken",
    guesses: "refresh",
  },
  stop: {
    group: "What runs",
    brief: { beside: "reload" },
    summary: "End the daemon when its calls are done; a client that needs it starts the next.",
    flags: {},
    shared: ["gateway"],
    examples: ["stop", "stop --config .mcp.json"],
    guesses: "kill quit down shutdown exit end",
  },
  attach: {
    group: "What runs",
    brief: "one process of each server for all clients",
    summary:
      "Serve a client on standard input and output from the daemon that all clients of this user share.",
    flags: {
      config: { value: "FILE", help: "the config to serve (default ~/.junctor/junctor.json)" },
      "unsafe-config": { help: "use the config though other users may write it" },
      profile: { value: "NAME", help: "serve this profile of the config", complete: "profiles" },
      client: {
        value: "NAME",
        help: "the program that starts us, for `status` and the audit",
        complete: "clients",
      },
      workspace: {
        value: "FOLDER",
        help: "the folder of the project (default: the current one, if it can be one)",
      },
    },
    examples: [
      "attach --client cursor  what `install` writes into the client's file",
      "attach --config .mcp.json  another config, with a daemon of its own",
    ],
  },
  daemon: {
    group: "What runs",
    brief: { beside: "attach" },
    summary: "The one process behind all clients that run `attach`: see it, stop it, or run it here.",
    operands: "[status|logs|stop|restart]",
    complete: [["status", "logs", "stop", "restart"]],
    flags: {
      keep: { help: "stay also while there is no client, as a service does" },
      "take-over": { help: "take the place of a daemon that runs" },
      json: { help: "status and logs as JSON" },
    },
    shared: ["config"],
    examples: [
      "daemon status  its clients and servers",
      "daemon logs  the end of its log",
      "daemon stop  end it; a client that needs it starts the next",
      "daemon --keep  run it here, for a service manager",
    ],
  },
  service: {
    group: "What runs",
    brief: { beside: "attach" },
    summary: "Have the system start the daemon with the session of this user, and keep it.",
    operands: "install|uninstall",
    complete: [["install", "uninstall"]],
    flags: {
      config: { value: "FILE", help: "the config to serve (default ~/.junctor/junctor.json)" },
      "dry-run": { help: "show the file, and write nothing" },
    },
    examples: ["service install", "service uninstall"],
  },
  audit: {
    group: "What runs",
    brief: "check an audit file; complete words in your shell",
    summary: "Check that an audit file, with its old files, is as it was written, and say where it is not.",
    operands: "verify [FILE]",
    complete: [["verify"]],
    flags: {
      config: { value: "FILE", help: "the config whose junctor.audit names the file" },
      expect: { value: "HASH", help: "a hash that an earlier check printed: that line must still be there" },
      json: { help: "the same as one JSON object: files, records, hash, faults; a list of them for workers" },
    },
    examples: [
      "audit verify audit.jsonl",
      "audit verify --config mcp.json  the file of junctor.audit",
      "audit verify audit.jsonl --expect 9f86d081884c…  also that its end was not cut off",
    ],
    failure: "the file is not as it was written",
  },
  completion: {
    group: "What runs",
    brief: { beside: "audit" },
    summary: "Print a script that completes commands, servers, tools and arguments in a shell.",
    operands: "bash|zsh|fish",
    complete: [["bash", "zsh", "fish"]],
    flags: {},
    examples: [
      "completion bash > ~/.local/share/bash-completion/completions/junctor",
      "completion zsh > ~/.zfunc/_junctor",
      "completion fish > ~/.config/fish/completions/junctor.fish",
    ],
  },
  explain: {
    group: "Every day",
    brief: { beside: "check" },
    summary: "Say what the code of an error means and what to do about it, without looking at anything.",
    operands: "CODE",
    complete: ["codes"],
    flags: { json: { help: "as JSON" } },
    examples: ["explain upstream.unavailable", "explain 32602  every error with this number of JSON-RPC"],
    guesses: "error errors code codes meaning",
  },
} as const;

/** The flags of every command. */
export const commonFlags = {
  help: { help: "show this help", short: "h" },
  version: { help: "show the version", short: "v" },
} as const;

export type CommandName = keyof typeof commands;

/** Commands for our own processes; no help names them, and they have no flags. */
export type InnerCommandName = "serve-worker" | "renew-login";

type Intersection<Union> = (Union extends unknown ? (given: Union) => void : never) extends (
  given: infer All,
) => void
  ? All
  : never;

type RowsOf<Row> = Row extends { readonly shared: readonly (infer Group extends keyof typeof sharedFlags)[] }
  ? Intersection<(typeof sharedFlags)[Group]>
  : object;

/** The values of flags: a switch is true or false, a flag with a value has the last one that was given, or all. */
export type Values<Rows> = {
  readonly [Flag in keyof Rows]: Rows[Flag] extends { readonly many: true }
    ? readonly string[]
    : Rows[Flag] extends { readonly value: string }
      ? string | undefined
      : boolean;
};

/** The values of the flags that commands share. */
export type SharedValues<Group extends keyof typeof sharedFlags> = Values<(typeof sharedFlags)[Group]>;

/** A parsed command line. */
export interface Parsed<Flags = object> {
  readonly flags: Flags;
  readonly operands: readonly string[];
  /** What followed `--`; undefined without one. */
  readonly command: readonly string[] | undefined;
}

/** Runs a command. Resolves with the exit code. */
export type Run<Name extends CommandName | InnerCommandName> = (parsed: ParsedOf<Name>) => Promise<number>;

export type ParsedOf<Name extends CommandName | InnerCommandName> = Name extends CommandName
  ? Parsed<Values<(typeof commands)[Name]["flags"]> & Values<RowsOf<(typeof commands)[Name]>>>
  : Parsed;

const rows: { readonly [name: string]: CommandRow } = commands;

export const commandNames: readonly CommandName[] = Object.keys(commands) as CommandName[];

/** The row of a command; undefined for a word that is not one. */
export function rowOf(name: string): CommandRow | undefined {
  return Object.hasOwn(rows, name) ? rows[name] : undefined;
}

/** All flags of a command, its own first. */
export function flagsOf({ flags, shared = [] }: CommandRow): { readonly [name: string]: FlagRow } {
  const groups: readonly { readonly [name: string]: FlagRow }[] = shared.map((group) => sharedFlags[group]);
  return Object.assign({}, flags, ...groups, commonFlags) as { readonly [name: string]: FlagRow };
}
