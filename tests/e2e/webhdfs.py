"""webhdfs.py - a stand-in for HDFS: WebHDFS of a name node and a data node in this process, with failures on demand.

    hdfs = Standin()                         hdfs.url = "hdfs://127.0.0.1:19820"
        hdfs.put("/d/a.csv", data)           the files are in memory: hdfs.files[path] = Inode
        hdfs.fault = lambda request: "500"   called for every request, in order; a kind of FAULTS or None

It is no HDFS: one lock, no replicas, no blocks. What it answers was compared with Hadoop 3.4.2 (tests/e2e/t_hdfs.py runs the
same tests on both).
"""
import http.server
import itertools
import json
import socket
import threading
import time
import urllib.parse

PORTS = range(19820, 19900)
# 500, 503: an answer that may pass. close: no answer. stall: none for 30 s. short: the connection ends in the middle of the
# body. less: a whole answer with half of the bytes. half: half of the bytes written are kept, and the connection ends.
# lost: done, but the answer is lost. standby, safe: refusals of a name node that may pass.
FAULTS = ("500", "503", "close", "stall", "short", "less", "half", "lost", "standby", "safe")
numbers = itertools.count(16386)


class Inode:
    def __init__(self, data=None, open_=False):
        self.data, self.id, self.open, self.time = data, next(numbers), open_, int(time.time() * 1000)  # data None: a folder


class Request:
    def __init__(self, number, method, node, path, query):
        self.number, self.method, self.node, self.path, self.query = number, method, node, path, query
        self.op = query.get("op", "").upper()


class Refusal(Exception):
    def __init__(self, status, kind, text):
        super().__init__(text)
        self.status, self.kind = status, kind


def absent(path):
    return Refusal(404, "FileNotFoundException", "File does not exist: " + path)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def reply(self, status, body=b"", location=None, kind="application/octet-stream", sent=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body if sent is None else body[:sent])

    def answer(self, value):
        self.reply(200, json.dumps(value).encode(), kind="application/json")

    def refuse(self, r):
        text = json.dumps({"RemoteException": {"exception": r.kind, "javaClassName": "org.apache." + r.kind, "message": str(r)}})
        self.reply(r.status, text.encode(), kind="application/json")

    def cut(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def handle_any(self):
        owner, node = self.server.owner, self.server.node
        at = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(at.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.unquote(at.path)[len("/webhdfs/v1"):]
        with owner.lock:
            request = Request(len(owner.requests), self.command, node, path, query)
            owner.requests.append(request)
            fault = owner.fault(request) if owner.fault else None
        try:
            self.carry_out(owner, request, body, fault)
        except Refusal as r:
            self.refuse(r)
        except OSError:
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = handle_any

    def carry_out(self, owner, request, body, fault):
        if fault in ("500", "503"):
            return self.reply(int(fault), b"out of order")
        if fault == "close":
            return self.cut()
        if fault == "stall":
            owner.over.wait(30)
            return self.cut()
        if fault == "standby":
            raise Refusal(403, "StandbyException", "Operation category READ is not supported in state standby")
        if fault == "safe":
            raise Refusal(403, "SafeModeException", "Cannot create file. Name node is in safe mode.")
        if not self.path.startswith("/webhdfs/v1/"):
            return self.reply(404, b"no such page")
        owner.check(request)
        act = getattr(owner, request.node + "_" + request.op, None)
        if not act:
            raise Refusal(400, "IllegalArgumentException", "Invalid value for webhdfs parameter \"op\": " + request.op)
        if fault == "half":
            body = body[:len(body) // 2]
        with owner.lock:
            done = act(request, body)
        if fault in ("lost", "half"):
            return self.cut()
        if isinstance(done, str):
            return self.reply(307, location=done)
        if isinstance(done, bytes):
            if fault == "less":
                done = done[:len(done) // 2]
            self.reply(200, done, sent=len(done) // 2 if fault == "short" else None)
            return self.cut() if fault == "short" else None
        return self.reply(done) if isinstance(done, int) else self.answer(done)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


class Standin:
    kind = "stand-in"

    def __init__(self, gateway=False, token=None):
        self.lock, self.over = threading.RLock(), threading.Event()
        self.files, self.requests, self.fault = {"/": Inode()}, [], None
        self.gateway, self.token, self.overwrites = gateway, token, 0
        self.servers = [self.serve("name"), self.serve("data")]
        self.port = self.servers[0].server_address[1]
        self.url = "hdfs://127.0.0.1:%d" % self.port

    def serve(self, node):
        for port in PORTS:
            try:
                server = Server(("127.0.0.1", port), Handler)
            except OSError:
                continue
            server.owner, server.node = self, node
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            return server
        raise OSError("no free port in 19820-19899")

    def close(self):
        self.over.set()
        for s in self.servers:
            s.shutdown()
            s.server_close()

    # ---------------------------------------------------------------- what a test does
    def put(self, path, data):
        with self.lock:
            self.make(path.rsplit("/", 1)[0] or "/")
            self.files[path] = Inode(data)

    def get(self, path):
        return self.files[path].data

    def names(self, folder=""):
        with self.lock:
            return sorted(p for p, f in self.files.items() if f.data is not None and p.startswith(folder + "/"))

    def make(self, folder):
        parts = folder.strip("/").split("/")
        for i in range(len(parts)):
            self.files.setdefault("/" + "/".join(parts[:i + 1]), Inode())

    # ---------------------------------------------------------------- rights and files
    def check(self, request):
        if self.token and request.query.get("delegation") != self.token:
            raise Refusal(401, "SecurityException", "Failed to obtain user group information: token expected")
        if "/private" in request.path and request.query.get("user.name") == "nobody":
            raise Refusal(403, "AccessControlException", "Permission denied: user=nobody, access=WRITE, inode=\"/private\"")
        if "/full" in request.path and request.op == "CREATE":
            raise Refusal(403, "DSQuotaExceededException", "The DiskSpace quota of /full is exceeded: quota = 1 B")

    def find(self, path):
        f = self.files.get(path.rstrip("/") or "/")
        if not f:
            raise absent(path)
        return f

    def status(self, path, name=""):
        f = self.find(path)
        return {"fileId": f.id, "length": len(f.data or b""), "modificationTime": f.time, "pathSuffix": name,
                "type": "DIRECTORY" if f.data is None else "FILE"}

    def data_node(self, request):
        query = {k: v for k, v in request.query.items() if k not in ("excludedatanodes",)}
        port = self.servers[1].server_address[1]
        return "http://127.0.0.1:%d/webhdfs/v1%s?%s" % (port, urllib.parse.quote(request.path), urllib.parse.urlencode(query))

    # ---------------------------------------------------------------- operations of the name node
    def name_GETFILESTATUS(self, request, body):
        return {"FileStatus": self.status(request.path)}

    def name_GET_BLOCK_LOCATIONS(self, request, body):
        return {"LocatedBlocks": {"isUnderConstruction": self.find(request.path).open}}

    def name_LISTSTATUS(self, request, body):
        self.find(request.path)
        front = request.path.rstrip("/") + "/"
        names = [p[len(front):] for p in self.files if p.startswith(front) and "/" not in p[len(front):] and p != front]
        return {"FileStatuses": {"FileStatus": [self.status(front + n, n) for n in sorted(names)]}}

    def name_CHECKACCESS(self, request, body):
        self.find(request.path)
        return 200

    def name_MKDIRS(self, request, body):
        self.make(request.path)
        return {"boolean": True}

    def name_DELETE(self, request, body):
        gone = [p for p in self.files if p == request.path or p.startswith(request.path + "/")]
        for p in gone:
            del self.files[p]
        return {"boolean": bool(gone)}

    def name_RENAME(self, request, body):
        to, known = request.query["destination"], not self.gateway
        options = request.query.get("renameoptions", "") if known else ""
        if request.path not in self.files:
            if options:
                raise absent(request.path)
            return {"boolean": False}
        if to in self.files and (options != "OVERWRITE" or self.files[to].data is None):
            return {"boolean": False}
        for p in [p for p in self.files if p == request.path or p.startswith(request.path + "/")]:
            self.files[to + p[len(request.path):]] = self.files.pop(p)
        return 200 if options else {"boolean": True}

    def name_OPEN(self, request, body):
        self.find(request.path)
        return self.data_node(request)

    def name_CREATE(self, request, body):
        return self.data_node(request)

    # ---------------------------------------------------------------- operations of the data node
    def data_OPEN(self, request, body):
        f = self.find(request.path)
        offset = int(request.query.get("offset", 0))
        if offset > len(f.data):
            raise Refusal(403, "IOException", "Offset=%d out of the range [0, %d)" % (offset, len(f.data)))
        return f.data[offset:offset + int(request.query.get("length", len(f.data)))]

    def data_CREATE(self, request, body):
        self.make(request.path.rsplit("/", 1)[0] or "/")
        self.files[request.path] = Inode(body)
        return 201
