"""The script of ../scripted_society, except that the model never answers the translator's first request."""

import threading

from model import play, serve

first_request = threading.Lock()


def slow_play(messages):
    # Only the translator's first request gets the lock, because nothing releases the lock. This request then waits
    # for ever.
    if "roleName=translator" in messages[0]["content"] and first_request.acquire(blocking=False):
        threading.Event().wait()
    return play(messages)


serve(slow_play)
