"""The commands in the order in which people need them, under what they want to do."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

TASKS = {
    "Run brokers": (
        *("serve", "console", "top", "ready", "admin", "neighbors"),
        *("password", "token", "prepare", "backup", "restore"),
    ),
    "Publish and subscribe": ("pub", "sub", "query", "get", "collect"),
    "Try filters": ("filter", "match"),
    "Watch it work": ("demo", "city"),
    "Simulate, and check what is claimed": ("sim", "explore", "lab"),
    "Work on data": ("pipeline",),
}
MORE = "More"


class Tasks(TyperGroup):
    """Lists commands by task; those of none come last."""

    def list_commands(self, ctx: Any) -> list[str]:
        known = [name for names in TASKS.values() for name in names if name in self.commands]
        return [*known, *(name for name in self.commands if name not in known)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        known = {name for names in TASKS.values() for name in names}
        rest = tuple(name for name in self.commands if name not in known)
        for task, names in {**TASKS, MORE: rest}.items():
            rows = [(name, self.commands[name].get_short_help_str(80)) for name in names if name in self.commands]
            if rows:
                with formatter.section(task):
                    formatter.write_dl(rows)
