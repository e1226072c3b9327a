// Which process has which connection, by the tables of the kernel. Linux only.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const established = "01";

/**
 * How many connections of clients to a port of this machine a process holds.
 *
 * @param {number} pid
 * @param {number} port
 */
export function connectionsOf(pid, port) {
  const ours = new Set(connectionsTo(port).map(({ inode }) => inode));
  return socketsOf(pid).filter((inode) => ours.has(inode)).length;
}

/**
 * Which of the processes holds the connection from this port of a client.
 *
 * @param {readonly number[]} pids
 * @param {number} port
 * @param {number} clientPort
 */
export function holderOf(pids, port, clientPort) {
  const found = connectionsTo(port).find((connection) => connection.clientPort === clientPort);
  return found && pids.find((pid) => socketsOf(pid).includes(found.inode));
}

/** @param {number} port */
function connectionsTo(port) {
  const rows = readFileSync("/proc/net/tcp", "latin1").split("\n").slice(1, -1);
  return rows.flatMap((row) => {
    const [, local = "", remote = "", state, , , , , , inode = ""] = row.trim().split(/\s+/);
    return state === established && portOf(local) === port ? [{ clientPort: portOf(remote), inode }] : [];
  });
}

/** @param {string} address */
function portOf(address) {
  return Number.parseInt(address.split(":")[1] ?? "", 16);
}

/** The inodes of all sockets that a process has open. */
/** @param {number} pid */
function socketsOf(pid) {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((fd) => {
      const inode = /^socket:\[(\d+)\]$/.exec(targetOf(`${folder}/${fd}`))?.[1];
      return inode === undefined ? [] : [inode];
    });
  } catch {
    return []; // It has ended.
  }
}

/** @param {string} path */
function targetOf(path) {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // It was closed since it was listed.
  }
}
