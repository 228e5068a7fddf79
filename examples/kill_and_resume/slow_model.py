"""The script of ../scripted_society, except that the model never answers the translator's first request."""

import threading

from model import play, serve

first_request = threading.Lock()


def slow_play(messages):
    # The translator's first request takes the lock and then waits for ever. Nothing releases the lock, so no later
    # request takes it, and each later request is answered.
    if "roleName=translator" in messages[0]["content"] and first_request.acquire(blocking=False):
        threading.Event().wait()
    return play(messages)


serve(slow_play)
