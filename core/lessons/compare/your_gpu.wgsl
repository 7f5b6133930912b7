// c = a @ b, where c is m×n. A workgroup shares tiles of 16×16 numbers, so
// that each number is read once for 16 results. A thread makes four results.
struct Shape {
  m: u32, n: u32, k: u32,
  more: u32,                   // what is done with the sums, see below
  a: vec2<u32>, b: vec2<u32>,  // strides between rows, and between columns
}
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> extra: array<f32>;
@group(0) @binding(4) var<storage, read_write> c: array<f32>;
var<workgroup> left: array<array<f32, 16>, 16>;
var<workgroup> right: array<array<vec4<f32>, 4>, 16>;
const LEARNING_RATE = 0.1;

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
    switch (shape.more) {
      case 1u: { sum += extra[column]; }                        // a bias
      case 2u: { sum = max(sum + extra[column], 0.0); }         // and ReLU
      case 3u: { sum = select(0.0, sum, extra[place] > 0.0); }  // its backward
      case 4u: { sum = c[place] - LEARNING_RATE * sum; }        // SGD
      default: {}
    }
    c[place] = sum;
  }
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read_write> gradient: array<f32>;
@group(0) @binding(3) var<storage, read_write> losses: array<f32>;

// The cross-entropy of each image of a batch, and the gradient of its mean.
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
  losses[image] = log(sum) + largest - logits[first + label];
}
