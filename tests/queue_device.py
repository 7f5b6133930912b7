"""A device that works through a queue, to try clocks on."""

import queue
import threading
import time


class QueueDevice:
    """Takes work and returns at once, as a GPU does; a thread does it in order."""

    def __init__(self) -> None:
        self.queue: queue.Queue[float] = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while (seconds := self.queue.get()) >= 0:
            time.sleep(seconds)
            self.queue.task_done()

    def launch(self) -> None:
        self.queue.put(0.03)

    def synchronize(self, _: object = None) -> None:
        self.queue.join()
