// Calls by grpc-js, as run.py says in JSON; prints what became of each.

const grpc = require('@grpc/grpc-js');

const job = JSON.parse(process.argv[2]);
const client = new grpc.Client(
    'ipv4:' + job.targets.join(','), grpc.credentials.createInsecure(), {
      'grpc.service_config': JSON.stringify(job.service_config),
      'grpc.enable_retries': 1,
    });
const same = (bytes) => bytes;
const metadata = new grpc.Metadata();
for (const [name, value] of Object.entries(job.metadata)) {
  metadata.set(name, value);
}

function call() {
  const begun = Date.now();
  return new Promise((resolve) => {
    client.makeUnaryRequest(
        '/weir.grpc.testing.Echo/Say', same, same, Buffer.from('\n\x02hi'),
        metadata, {deadline: begun + job.deadline_ms},
        (error) => resolve({
          code: error ? error.code : 0,
          ms: Date.now() - begun,
        }));
  });
}

client.waitForReady(Date.now() + 15000, async (error) => {
  if (error) throw error;
  const ends = [];
  for (let i = 0; i < job.calls; ++i) ends.push(await call());
  console.log(JSON.stringify(ends));
  client.close();
});
