"""How fast the console's map draws: python benchmarks/console.py [--points 1000 3000 10000]

Points that move once a second, drawn by a real Chromium as the live map draws them. Printed are frames a second, and
what a frame costs the page's own thread; a machine without a graphics card also paints with its processor.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil

from playwright.async_api import async_playwright

from godwit.console.fleet import Fleet
from godwit.console.serving import Hosted
from godwit.net.address import Address

GOAL_PER_S = 30
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
DRAWN = """async ([points, seconds]) => {
  const { Globe } = await import("/static/globe.js");
  const canvas = document.createElement("canvas");
  canvas.style.width = "1000px"; canvas.style.height = "560px";
  document.body.append(canvas);
  const brokers = ["#0f766e", "#b45309", "#4338ca", "#be185d", "#4d7c0f", "#0369a1", "#7e22ce", "#92400e"];
  const globe = new Globe(canvas, { panel: "#fff", line: "#ddd", dim: "#888", text: "#111", brokers });
  const move = () => {
    for (let at = 0; at < points; at++)
      globe.thing(`taxi-${at}`, 39.8 + Math.random() * 0.3, 116.3 + Math.random() * 0.4, at % 8, performance.now());
  };
  move();
  const timer = setInterval(move, 1000), began = performance.now(), before = globe.frames;
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const frames = (globe.frames - before) / ((performance.now() - began) / 1000);
  clearInterval(timer); globe.stop(); canvas.remove();
  const costs = [...globe.costs].sort((a, b) => a - b);
  return [frames, costs[Math.floor(costs.length / 2)], costs.at(-1)];
}"""


async def measured(points: list[int], seconds: float) -> None:
    hosted = Hosted(Fleet(), Address("127.0.0.1", 0))
    await hosted.start()
    async with async_playwright() as running:
        browser = await running.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        page = await browser.new_page()
        await page.goto(hosted.url)
        for many in points:
            frames, median, worst = await page.evaluate(DRAWN, [many, seconds])
            verdict = "met" if frames >= GOAL_PER_S else "missed"
            print(
                f"{many:>7,} points  {frames:5.1f} frames/s (goal {GOAL_PER_S}: {verdict})"
                f"  {median:5.1f} ms of script a frame, {worst:.1f} at worst",
                flush=True,
            )
        await browser.close()
    await hosted.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, nargs="+", default=[1_000, 3_000, 10_000])
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    asyncio.run(measured(options.points, options.seconds))
