"""A model that reports in which form a picture arrived: as an image part, or as a text that describes it."""

import base64

from model import serve, tell


def look(messages):
    # The first message is the system message. The second is the user's message with the picture.
    content = messages[1]["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    tell(f"The message with the picture has these parts: {', '.join(part['type'] for part in parts)}")
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    if not pictures:
        return {"content": "I see no picture, only a text about it."}
    kind, data = pictures[0].split(";base64,")
    return {"content": f"I see a picture: {kind}, {len(base64.b64decode(data))} bytes."}


serve(look)
