"""Five hundred pictures as phones make them, uploaded and read back by another decoder, Pillow: pixels, orientation and colours are
as they were, and nothing else is left.

Takes the server's binary from SVC_BIN.
"""

import io
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from PIL import Image, ImageCms, ImageFilter, ImageOps, PngImagePlugin

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BINARY = Path(os.environ.get("SVC_BIN", ROOT / "target/debug/svc")).resolve()
# How long a server may take to be ready; the first start compiles the guests.
START_SECONDS = 180
PICTURES = 500
# Stands in everything that a picture must lose.
SECRET = b"Grace's kitchen"
LIMITS = ["op", "owner", "upload", "upload_deployment", "file"]

ORIENTATION, GPS, MAKE, MODEL, DESCRIPTION, MAKER_NOTE = 0x0112, 0x8825, 0x010F, 0x0110, 0x010E, 0x927C
XMP = b'<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><!--' + SECRET + b"--></x:xmpmeta>"
# What a moving photo has behind its still one, and what one maker's phones add.
CLIP = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + b"\0\0\0\x20mdat" + SECRET.ljust(24, b".")
TRAILER = SECRET + b"SEFH\x6b\0\0\0\x01\0\0\0SEFT"


def draw(seed, mode):
    """Makes a picture with edges, gradients and noise, which differs with its seed."""
    chance = random.Random(seed)
    size = (chance.randrange(17, 120), chance.randrange(17, 120))
    noise = Image.frombytes("RGB", size, chance.randbytes(size[0] * size[1] * 3)).filter(ImageFilter.GaussianBlur(2))
    ramp = Image.linear_gradient("L").resize(size)
    picture = Image.composite(noise, Image.new("RGB", size, (chance.randrange(256), 90, 200)), ramp)
    if mode.endswith("A"):
        picture.putalpha(ramp.rotate(180))
    return picture.convert(mode)


def exif(orientation, thumbnail=None):
    """Says how a picture is held, and all that a phone tells beside it."""
    tags = Image.Exif()
    tags[ORIENTATION] = orientation
    tags[MAKE], tags[MODEL] = "Pocket", SECRET.decode()
    tags[DESCRIPTION] = SECRET.decode()
    tags.get_ifd(GPS).update({1: "N", 2: (52.0, 31.0, 12.5), 3: "E", 4: (13.0, 24.0, 17.0), 29: "2026:11:29"})
    tags.get_ifd(0x8769).update({MAKER_NOTE: SECRET * 20, 0x9003: "2026:11:29 20:00:00"})
    return tags.tobytes()


def profile():
    """Returns a profile of colours, as pictures of newer phones carry one."""
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def save(picture, kind, **how):
    """Encodes a picture."""
    into = io.BytesIO()
    picture.save(into, kind, **how)
    return into.getvalue()


def jpeg(seed, orientation):
    """A photo: with a second picture, a clip or a maker's trailer behind it."""
    mode = ["RGB", "RGB", "RGB", "L"][seed % 4]
    more = [b"", save(draw(seed + 1, "RGB"), "JPEG", exif=exif(1)), CLIP, TRAILER][seed // 2 % 4]
    colours = {"icc_profile": profile()} if seed % 3 == 0 and mode == "RGB" else {}
    how = {"quality": 60 + seed % 40, "subsampling": seed % 3, "progressive": seed % 5 == 0, "comment": SECRET}
    return save(draw(seed, mode), "JPEG", exif=exif(orientation), xmp=XMP, **how, **colours) + more


def png(seed, orientation):
    """A picture of a screen."""
    words = PngImagePlugin.PngInfo()
    words.add_text("Comment", SECRET.decode(), zip=seed % 2 == 0)
    words.add_itxt("XML:com.adobe.xmp", XMP.decode())
    colours = {"icc_profile": profile()} if seed % 3 == 0 else {}
    picture = draw(seed, ["RGB", "RGBA", "L", "LA"][seed % 4])
    if seed % 5 == 0:
        picture = picture.convert("RGB").quantize(32)
    return save(picture, "PNG", exif=exif(orientation), pnginfo=words, **colours) + [b"", TRAILER][seed % 2]


def webp(seed, orientation):
    """A picture from a messenger: still, without loss, or moving."""
    colours = {"icc_profile": profile()} if seed % 3 == 0 else {}
    moving = {"save_all": True, "duration": 80, "append_images": [draw(seed, "RGBA").rotate(90 * turn) for turn in (1, 2)]}
    how = [{}, {"lossless": True}, moving][seed % 3]
    return save(draw(seed, ["RGB", "RGBA"][seed % 2]), "WEBP", exif=exif(orientation), xmp=XMP, **how, **colours)


def avif(seed, orientation):
    """A photo of newer phones; its orientation is of the container."""
    colours = {"icc_profile": profile()} if seed % 3 == 0 else {}
    return save(draw(seed, ["RGB", "RGBA"][seed % 2]), "AVIF", speed=10, exif=exif(orientation), xmp=XMP, **colours)


def gif(seed, orientation):
    """A moving joke."""
    frames = [draw(seed, "RGB").rotate(30 * turn) for turn in range(3)]
    return save(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=70, loop=0, comment=SECRET) + TRAILER


# The kinds, as often as phones make them.
KINDS = [jpeg, jpeg, jpeg, jpeg, png, png, webp, webp, avif, gif]


def looks(file):
    """Returns what somebody sees of a picture: every frame, upright, with its profile of colours."""
    picture = Image.open(io.BytesIO(file))
    frames = []
    for frame in range(getattr(picture, "n_frames", 1)):
        picture.seek(frame)
        upright = ImageOps.exif_transpose(picture)
        frames.append((upright.size, upright.convert("RGBA").tobytes(), picture.info.get("duration")))
    # A second photo of a file is none that a browser shows.
    if picture.format in ("JPEG", "MPO"):
        frames = frames[:1]
    return frames, picture.info.get("icc_profile")


def left_over(file):
    """Returns what is left of what a picture must lose."""
    picture = Image.open(io.BytesIO(file))
    tags = dict(picture.getexif())
    found = [f"tag {tag:#06x}" for tag in tags if tag != ORIENTATION]
    # An item of a container stays where others are counted from, with zeros in its place.
    said = {name: picture.info.get(name) for name in ("comment", "xmp", "XML:com.adobe.xmp", "Comment", "mp")}
    found += [name for name, value in said.items() if value and not (isinstance(value, bytes) and not value.strip(b"\0"))]
    found += [str(part) for part in (SECRET, b"ftypmp42", b"SEFT", b"xpacket") if part in file]
    ends = {"JPEG": b"\xff\xd9", "PNG": b"IEND\xae\x42\x60\x82", "GIF": b";"}
    if picture.format in ends and not file.endswith(ends[picture.format]):
        found.append("bytes behind its end")
    return found


class Album:
    """A server with a page whose visitors upload pictures."""

    def __init__(self, directory):
        settings = Path(directory, "svc.toml")
        plenty = [f"{name}_{part} = 1000000\n" for name in LIMITS for part in ("per_minute", "burst")]
        settings.write_text("[limits]\n" + "".join(plenty))
        self.data = Path(directory, "data")
        cache = BINARY.parent.parent / "tests-cache"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        serve = [BINARY, "serve", "--listen", "127.0.0.1:0", "--config", settings, "--data", self.data, "--cache", cache]
        self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = f"http://localhost:{self.process.stdout.readline().strip().rsplit(':', 1)[-1]}"
        self.wait_until_ready()
        command = [BINARY, "namespace", "create", "acme", "--data", self.data, "--json"]
        self.credential = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["credential"]
        project = self.ask("POST", "", {"name": "Album"})["id"]
        self.ask("POST", f"/{project}/backend", {"ddl": "CREATE TABLE photos (file TEXT REFERENCES svc_files(id));"})
        actions = [
            {"name": "add", "sql": "INSERT INTO photos VALUES (:svc_file)", "files": {"types": ["image/*"], "anonymous": True}},
            {"name": "see", "sql": "SELECT 1 FROM photos WHERE file = :svc_file"},
        ]
        self.ask("PUT", f"/{project}/backend/actions", {"actions": actions})
        self.ask("POST", f"/{project}/frontends", {"type": "html", "content": "<p>Album", "requested_slug": "album"})

    def wait_until_ready(self):
        """Waits until the server takes pictures."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz"):
                    return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def ask(self, method, path, body):
        """Calls the server as the owner."""
        headers = {"authorization": f"Bearer {self.credential}"}
        request = urllib.request.Request(f"{self.url}/api/v1/projects{path}", json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or "null")

    def through(self, file):
        """Uploads a picture, and returns what is said of it, and what anybody gets."""
        headers = {"content-type": "application/octet-stream"}
        request = urllib.request.Request(f"{self.url}/album/api/files/add", file, headers)
        with urllib.request.urlopen(request) as answer:
            said = json.loads(answer.read())["file"]
        with urllib.request.urlopen(f"{self.url}/album/api/files/see/{said['id']}") as answer:
            return said, answer.read()


def main():
    wrong = []
    counts = {}
    with tempfile.TemporaryDirectory(prefix="svc-pictures-") as directory:
        album = Album(directory)
        try:
            for number, kind in zip(range(PICTURES), itertools.cycle(KINDS)):
                name = f"{kind.__name__} {number}"
                file = kind(number, number // len(KINDS) % 8 + 1)
                assert SECRET in file or kind is png, name
                said, kept = album.through(file)
                if looks(kept) != looks(file):
                    wrong.append(f"{name}: looks otherwise")
                if [said["width"], said["height"]] not in (list(looks(kept)[0][0][0]), list(Image.open(io.BytesIO(kept)).size)):
                    wrong.append(f"{name}: {said['width']} x {said['height']}")
                wrong += [f"{name}: {part}" for part in left_over(kept)]
                counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
        finally:
            album.process.terminate()
            ended = album.process.wait(timeout=30)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    sys.exit("\n".join(wrong) or ended)


if __name__ == "__main__":
    main()
