import { expect, test } from "vitest";
import { fromFragment, toFragment } from "../../src/model/share.ts";
import { listed, number, percent } from "../../src/model/words.ts";
import { quantile } from "../../src/model/measures.ts";
import { nanoseconds, quantity } from "../../src/model/scenario.ts";
import addresses from "./addresses.json";

test("numbers in sentences are those of the command line", () => {
  expect([0, 1234.5, 123.45, 7.665, 0.9995, 0.2771, -3].map(number)).toEqual(["0.00", "1,235", "123.5", "7.67", "1.00", "0.277", "−3.00"]);
  expect(percent(0.5)).toBe("50.0 %");
  expect(listed(["a", "b", "c"])).toBe("a, b and c");
});

test("a session survives its address", async () => {
  const sources = [{ toml: 'name = "é"', file: "a.toml", seed: "18446744073709551615" }];
  expect(await fromFragment(await toFragment(sources))).toEqual({ sources });
  expect(await fromFragment("#lesson=slow-3g")).toEqual({ lesson: "slow-3g" });
  expect(await fromFragment("")).toBeNull();
  await expect(fromFragment("#run=AAAA")).rejects.toThrow();
  await expect(fromFragment(await toFragment([{ toml: "", file: "", seed: "x" }]))).rejects.toThrow("no session");
});

test("an address of the command line opens its scenarios", async () => {
  const { fragment, sources } = addresses;
  expect(await fromFragment(fragment)).toEqual({ sources });
});

test("quantities have their base units", () => {
  expect([quantity("8Mbit/s"), quantity("0.5%"), quantity("20ms"), quantity("200KiB")]).toEqual([8e6, 0.005, 20e6, 204_800]);
  expect(nanoseconds("1.5s")).toBe(1.5e9);
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
});
