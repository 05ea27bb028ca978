"""The radio of a running broker: opened before clients come, closed after they have gone."""

from __future__ import annotations

from godwit.net.air import Air
from godwit.net.antenna import AntennaError
from godwit.net.server import ServeError, Service


class RadioService(Service):
    def __init__(self, air: Air) -> None:
        self.air = air

    async def start(self) -> None:
        try:
            self.air.radio.start()
        except AntennaError as error:
            raise ServeError(f"adhoc.interfaces: {error}") from None

    async def stop(self) -> None:
        self.air.host.stop()
        self.air.radio.stop()

    def addresses(self) -> list[tuple[str, str]]:
        sealed = "sealed with a key" if self.air.config.air_key() else "without a key: anybody in range may speak"
        return [("air", f"{self.air.where}, {sealed}")]

    def troubles(self) -> list[str]:
        return self.air.radio.troubles()
