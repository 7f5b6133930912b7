// c = a @ b, where c is m×n. A workgroup shares tiles of 16×16 numbers, so
// that each number is read once for 16 results. A thread makes four results.
struct Shape {
  m: u32, n: u32, k: u32,
  more: u32,                   // 1: a bias, 2: bias and ReLU, 3: ReLU's backward
  a: vec2<u32>, b: vec2<u32>,  // strides between rows, and between columns
}
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> extra: array<f32>;
@group(0) @binding(4) var<storage, read_write> c: array<f32>;
var<workgroup> left: array<array<f32, 16>, 16>;
var<workgroup> right: array<array<vec4<f32>, 4>, 16>;

@compute @workgroup_size(4, 16)
fn multiply(@builtin(global_invocation_id) at: vec3<u32>,
            @builtin(local_invocation_id) here: vec3<u32>) {
  var sums = vec4<f32>();
  for (var start = 0u; start < shape.k; start += 16u) {
    let j = start + here.y;
    for (var offset = 0u; offset < 4u; offset++) {
      let i = start + 4u * here.x + offset;
      let column = 4u * at.x + offset;
      let x = a[at.y * shape.a.x + i * shape.a.y];
      let y = b[j * shape.b.x + column * shape.b.y];
      let is_in_a = at.y < shape.m && i < shape.k;
      let is_in_b = column < shape.n && j < shape.k;
      left[here.y][4u * here.x + offset] = select(0.0, x, is_in_a);
      right[here.y][here.x][offset] = select(0.0, y, is_in_b);
    }
    workgroupBarrier();
    for (var i = 0u; i < 16u; i++) {
      sums += left[here.y][i] * right[i][here.x];
    }
    workgroupBarrier();
  }
  for (var offset = 0u; offset < 4u; offset++) {
    let column = 4u * at.x + offset;
    if (at.y >= shape.m || column >= shape.n) { return; }
    let place = at.y * shape.n + column;
    var sum = sums[offset];
    if (shape.more == 1u || shape.more == 2u) { sum += extra[column]; }
    if (shape.more == 2u) { sum = max(sum, 0.0); }
    if (shape.more == 3u && extra[place] <= 0.0) { sum = 0.0; }
    c[place] = sum;
  }
}

// What the other two kernels know of a training step.
struct Step {
  rate: f32,  // the learning rate, with Adam's correction for the first steps
  root: f32,  // the root of Adam's correction for the mean square
  number: f32,
}
@group(0) @binding(0) var<uniform> now: Step;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read> labels: array<u32>;
@group(0) @binding(3) var<storage, read_write> gradient: array<f32>;
@group(0) @binding(4) var<storage, read_write> losses: array<f32>;
var<workgroup> parts: array<f32, 64>;

// The cross-entropy of a batch of 64 images, and its gradient. Each thread
// has one image.
@compute @workgroup_size(64)
fn cross_entropy(@builtin(local_invocation_index) image: u32) {
  let first = image * 10u;
  var largest = logits[first];
  for (var i = 1u; i < 10u; i++) { largest = max(largest, logits[first + i]); }
  var sum = 0.0;
  for (var i = 0u; i < 10u; i++) { sum += exp(logits[first + i] - largest); }
  let label = labels[image];
  for (var i = 0u; i < 10u; i++) {
    let share = exp(logits[first + i] - largest) / sum;
    gradient[first + i] = (share - select(0.0, 1.0, i == label)) / 64.0;
  }
  parts[image] = log(sum) + largest - logits[first + label];
  workgroupBarrier();
  if (image > 0u) { return; }
  var loss = 0.0;
  for (var i = 0u; i < 64u; i++) { loss += parts[i] / 64.0; }
  losses[u32(now.number)] = loss;
}

@group(0) @binding(1) var<storage, read> slopes: array<f32>;
@group(0) @binding(2) var<storage, read_write> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> mean: array<f32>;
@group(0) @binding(4) var<storage, read_write> square: array<f32>;

@compute @workgroup_size(64)
fn adam(@builtin(global_invocation_id) at: vec3<u32>) {
  let i = at.x;
  if (i >= arrayLength(&weights)) { return; }
  mean[i] = 0.9 * mean[i] + 0.1 * slopes[i];
  square[i] = 0.999 * square[i] + 0.001 * slopes[i] * slopes[i];
  weights[i] -= now.rate * mean[i] / (sqrt(square[i]) / now.root + 1e-8);
}
