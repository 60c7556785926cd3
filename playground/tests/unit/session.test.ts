import { expect, test } from "vitest";
import { Session, digestOf, scenarioFile } from "./engine.ts";
import { TABLES, type Frame } from "../../src/engine/protocol.ts";
import { Sessions } from "../../src/engine/sessions.ts";
import { addFrame, emptyTables } from "../../src/model/table.ts";
import { PACKET } from "../../src/view/picture.ts";
import { REMEDIES, SCHEDULERS, CONGESTION_CONTROLS, WORKLOADS } from "../../src/view/controls.ts";

const TOML = scenarioFile("wifi_3g");
const SOURCE = { toml: TOML, file: "wifi_3g.toml", seed: "3" };

test("a session with changes is a scenario with changes", () => {
  const session = new Session(TOML, "wifi_3g.toml", 3n);
  session.stepUntil(7_000_000_123);
  session.change(0, JSON.stringify({ rate: "3Mbit/s", delay: "40ms" }));
  session.change(1, JSON.stringify({ state: "down" }));
  session.stepEvents(5000);
  session.change(1, JSON.stringify({ state: "up" }));
  session.stepUntil(60e9);
  expect(session.isOver()).toBe(true);
  expect(digestOf(session.toml(), "again.toml", 3n)).toBe(session.digest());
  expect(session.digest()).not.toBe(digestOf(TOML, "wifi_3g.toml", 3n));
  const digest = session.digest();
  session.restart();
  session.stepUntil(60e9);
  expect(session.digest()).toBe(digest);
});

test("a step back ends at the event before", () => {
  const sessions = new Sessions();
  sessions.open([SOURCE]);
  sessions.advance(5e9, Infinity, true);
  const [before] = sessions.events(3);
  sessions.events(1);
  sessions.restart();
  const [again] = sessions.events(before?.state.events ?? 0);
  expect(again?.state).toEqual(before?.state);
  expect(again?.packets).toEqual(before?.packets);
});

test("errors are the lines of the command line", () => {
  const open = (toml: string): unknown => {
    try {
      return new Session(toml, "mine.toml", 1n);
    } catch (error) {
      return error;
    }
  };
  expect(open(TOML.replace("8Mbit/s", "8"))).toMatch(/^mine\.toml: path\[0\]\.rate: "8" has no unit/);
  expect(open('name = "x"\nduration = "1s"\n')).toMatch(/^mine\.toml: .*path/);
  expect(open("name =")).toMatch(/^mine\.toml: line 1, column/);
  const session = new Session(TOML, "mine.toml", 1n);
  expect(() => session.set('[["path.wify.rate", "1Mbit/s"]]')).toThrow(/unknown path "wify"; did you mean/);
  expect(() => session.change(0, '{"rate": "1"}')).toThrow(/mine\.toml: path\[0\]\.change\[0\]\.rate/);
  expect(session.now()).toBe(0);
});

test("every policy and workload that the page offers exists", () => {
  const session = new Session(TOML, "wifi_3g.toml", 1n);
  const set = (key: string, value: unknown): void => session.set(JSON.stringify([[`connection.download.${key}`, value]]));
  for (const name of SCHEDULERS) set("scheduler", name);
  for (const name of CONGESTION_CONTROLS) set("congestion_control", name);
  for (const [name] of REMEDIES) set("remedies", { [name]: true });
  for (const workload of Object.values(WORKLOADS)) set("workload", workload);
  expect(session.scenario()).toContain('"on_off"');
});

test("a packet has as many numbers as the page reads", () => {
  expect(Session.packetWidth()).toBe(PACKET);
});

test("the frames of a run add up to its tables", async () => {
  const toml = TOML.replace("[[connection]]", '[[connection]]\ndirection = "both"');
  const source = { ...SOURCE, toml };
  const sessions = new Sessions();
  const all = sessions.open([source, source]).map(({ schemas }) => emptyTables(schemas));
  const add = (frames: Frame[]): void => {
    for (const [session, tables] of all.entries()) addFrame(tables, frames[session]?.tables ?? {});
  };
  for (let until = 1; until <= 60; until += 1) add(sessions.advance(until * 1e9, Infinity, until % 3 === 0));
  const whole = await new Sessions().measure(source, []);
  const tables = emptyTables(whole.schemas);
  addFrame(tables, whole.tables);
  for (const each of all) {
    for (const name of TABLES) expect(each[name].objects().length, name).toBe(tables[name].objects().length);
    expect(each.blocks.objects()).toEqual(tables.blocks.objects());
  }
  expect(tables.blocks.column("connection")).toContain(1);
});

test("a fraction of a nanosecond does not use up the time of a frame", () => {
  const sessions = new Sessions();
  sessions.open([SOURCE]);
  const begun = performance.now();
  sessions.advance(1e8 + 0.5, 5000, false);
  expect(performance.now() - begun).toBeLessThan(2500);
});

test("a capture is a pcapng file with what was sent so far", () => {
  const session = new Session(TOML, "wifi_3g.toml", 1n);
  session.stepUntil(2e9);
  const early = session.pcapng(1e9);
  expect([...early.slice(0, 4)]).toEqual([0x0a, 0x0d, 0x0d, 0x0a]);
  session.stepUntil(4e9);
  expect(session.pcapng(1e9).length).toBeGreaterThan(early.length);
  expect(session.csv("links").split("\n")[0]).toMatch(/^path,direction,packets_in/);
});
