! SPDX-License-Identifier: Apache-2.0
!
! host PLAN: errors of the module mtrun, arrays, and a source that fails.
module broken
  use mtrun
  use, intrinsic :: iso_c_binding, only: c_int64_t
  implicit none
  type, extends(mtrun_source) :: generator
  contains
    procedure :: read => read_nothing
  end type generator
contains
  function read_nothing(self, request) result(rows)
    class(generator), intent(inout) :: self
    type(mtrun_request), intent(inout) :: request
    integer(c_int64_t) :: rows
    if (self%samples == -1) request%message = "the generator is broken"
    rows = -1
  end function read_nothing
  logical function stop_soon(progress)
    type(mtrun_progress), intent(in) :: progress
    stop_soon = progress%total_step == 250
  end function stop_soon
end module broken

program host
  use, intrinsic :: iso_c_binding
  use mtrun
  use mtrun_c, only: mtrun_match_any, c_mtrun_fit_result
  use broken
  implicit none
  type(mtrun_plan) :: plan
  type(mtrun_session) :: session
  type(mtrun_dataset) :: arrays, none
  type(mtrun_options) :: options
  type(mtrun_loop_options) :: loop
  type(c_mtrun_fit_result) :: result
  type(mtrun_error) :: error
  type(generator), target :: source
  real, target :: x(2, 4) = reshape([0, 0, 0, 1, 1, 0, 1, 1], [2, 4]), y(4) = [1, -2, 3, 0], grid(4, 4) = 0
  real, target :: prediction(4), kernel(2), again(2)
  double precision, target :: wide(4)
  integer(c_int32_t), target :: whole(4) = [1, -2, 3, 0]
  integer(c_int64_t) :: first, rows
  real(c_double) :: value
  character(256) :: path

  call get_command_argument(1, path)
  call plan%load(trim(path))
  options%devices = "cpu:2"
  options%private_variables = .true.
  call session%create(plan, options)
  call session%own_rows(first, rows)
  print "(2a, 4(1x, i0))", plan%model(), ":", plan%batch(), plan%shards(), first, rows
  call session%train_step([mtrun_tensor(x), mtrun_tensor(wide)], error)
  call say("type")
  call session%train_step([mtrun_tensor(x), mtrun_tensor(y(:3))], error)
  call say("size")
  call session%train_step([mtrun_tensor(grid(1:2, :)), mtrun_tensor(y)], error)
  call say("gaps")
  call session%train_step([mtrun_tensor(x)], error)
  call say("count")
  call session%train_step([mtrun_tensor(x), mtrun_tensor(y)], error)
  call say("step")
  value = session%metric("accuracy", error)
  call say("metric")
  call session%get_variable("weight", mtrun_tensor(kernel), error)
  call say("variable")
  call none%open(plan, "csv:none.csv", error)
  call say("data")
  call none%open(plan, ["z"], [mtrun_tensor(x)], error=error)
  call say("name")
  options%devices = "gpu:7"
  call none%open(plan, source, error=error)
  call say("open")
  call session%evaluate(none, error=error)
  call say("source")
  call none%free()

  call arrays%open(plan, ["x", "y"], [mtrun_tensor(x), mtrun_tensor(whole)], keys="scale=1", error=error)
  call say("arrays")
  loop%epochs = 300
  call session%fit(arrays, loop, validation=arrays, progress=stop_soon, result=result)
  print "(a, 1x, i0, 1x, i0)", "stopped", result%stopped, result%total_step
  call session%predict([mtrun_tensor(x), mtrun_tensor(prediction)])
  call session%get_variable("kernel", mtrun_tensor(kernel))
  call session%save("fortran.safetensors")
  call session%set_variable("kernel", mtrun_tensor(y(1:2)))
  call session%load("fortran.safetensors", mtrun_match_any)
  call session%get_variable("kernel", mtrun_tensor(again))
  print "(l1, f5.1)", all(kernel == again), prediction(3)
  call arrays%free()
  call session%free()
  call session%create(plan, options) ! ends the program
contains
  subroutine say(what)
    character(*), intent(in) :: what
    if (error%code == 0) then
      print "(2a)", what, ": taken"
    else
      print "(2a, i0, 2a)", what, ": ", error%code, ": ", error%message
    end if
    error = mtrun_error()
  end subroutine say
end program host
